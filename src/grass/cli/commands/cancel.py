"""`grass cancel`: end jobs, and return when they are gone."""

from grass.cli.commands import verb_command
from grass.cli.commands.verb_command import Verb, choose, report
from grass.cli.parsing.job_options import duration
from grass.cli.parsing.options import Command, Option, Values, read
from grass.cli.printing.streams import counted, warn
from grass.cli.printing.wording import UNFINISHED_STATES
from grass.client.client import Client
from grass.client.id_ranges import as_ranges
from grass.client.json_codec import Document
from grass.errors import TimedOut, UsageError

OPTIONS = (
    Option("--now", about="with SIGKILL, without grace"),
    Option("--signal", "NAME", "begin with this signal (default: TERM)"),
    Option("--grace", "TIME", "how long after it comes SIGKILL: 30s, 2m"),
    Option("--no-wait", about="return before they are gone"),
    *verb_command.OPTIONS,
)
VERB = Verb("cancel", "cancelled", UNFINISHED_STATES, "no such job is unfinished")
_TERMINATE, _KILL = 15, 9
_FIRST_LOOK_S = 0.2
_NEXT_LOOK_S = 5.0
"""How long to wait before checking whether a worker went away."""


def run(words: list[str]) -> int:
    """End the selected jobs."""
    values, select = read(OPTIONS, words)
    how = _signal_and_grace(values)
    with Client(broker=values.broker) as client:
        choice = choose(client, VERB, values, select)
        if choice is None:
            return 0
        done = client.cancel(choice.select, **how)
        if not values.has("no_wait"):
            _await_end(client, done["jobs"])
    report(VERB, values, done)
    return 0


def _await_end(client: Client, jobs: list[int]) -> None:
    """Wait for the jobs on reachable workers, and warn about the others."""
    patience_s = _FIRST_LOOK_S
    while jobs:
        try:
            client.wait(as_ranges(jobs), patience_s)
        except TimedOut:
            wanted, running = set(jobs), client.jobs(states=["running"])
            unreachable = [job for job in running if job.get("unreachable")]
            away = [job for job in unreachable if job["id"] in wanted]
            _warn_of_unreachable(away)
            wanted -= {job["id"] for job in away}
            jobs = sorted(wanted)
            patience_s = _NEXT_LOOK_S
        else:
            return


def _warn_of_unreachable(jobs: list[Document]) -> None:
    by_worker: dict[str, list[Document]] = {}
    for job in jobs:
        by_worker.setdefault(job["worker"], []).append(job)
    for worker, there in by_worker.items():
        which = f"job {there[0]['id']} ends"
        if len(there) > 1:
            which = f"{counted(len(there), 'job')} end"
        warn(f"worker `{worker}` is unreachable; {which} when it is back")


def _number(text: str) -> int:
    from grass.model.jobs.signals import signal_number

    return signal_number(text)


def _signal_and_grace(values: Values) -> Document:
    signal, grace_s = values.text("signal"), duration(values, "grace")
    if not values.has("now"):
        number = _TERMINATE if signal is None else _number(signal)
        return {"grace_s": grace_s, "signal": number}
    if signal is not None or grace_s is not None:
        other = "--grace" if signal is None else "--signal"
        raise UsageError(f"--now sends SIGKILL at once: {other} has no effect then")
    return {"grace_s": 0.0, "signal": _KILL}


COMMAND = Command(
    usage="[OPTIONS] SELECTOR...",
    about=(
        "End jobs: those that wait never start; those that run get SIGTERM, and "
        "SIGKILL if they are still there after their grace. Returns when every process "
        "of theirs is gone; a job whose worker is unreachable ends when that is back, "
        "and is not waited for."
    ),
    options=OPTIONS,
    examples=(
        "grass cancel 7",
        "grass cancel --now 3-9",
        "grass cancel --signal INT --grace 5m last",
        "grass cancel --yes queue:q1",
    ),
    run=run,
)
