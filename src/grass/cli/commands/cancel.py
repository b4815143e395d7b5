"""`grass cancel`: end jobs, and return when they are gone."""

from grass.cli.commands import verb_command
from grass.cli.commands.verb_command import JobVerb, choose, report
from grass.cli.parsing.cancel_options import HOW_TO_END, signal_and_grace
from grass.cli.parsing.options import Command, Option, read
from grass.cli.printing.streams import counted, warn
from grass.cli.printing.wording import UNFINISHED_STATES
from grass.client.client import Client
from grass.client.json_codec import Document
from grass.client.long_calls import await_cancelled

OPTIONS = (
    *HOW_TO_END,
    Option("--no-wait", about="return before they are gone"),
    *verb_command.OPTIONS,
)
VERB = JobVerb("cancel", "cancelled", UNFINISHED_STATES, "no such job is unfinished")


def run(words: list[str]) -> int:
    """End the selected jobs."""
    values, select = read(OPTIONS, words)
    how = signal_and_grace(values)
    with Client(broker=values.broker) as client:
        choice = choose(client, VERB, values, select)
        if choice is None:
            return 0
        done = client.cancel(choice.select, **how)
        if not values.has("no_wait"):
            await_cancelled(client, done["jobs"], _warn_of_unreachable)
    report(VERB, values, done)
    return 0


def _warn_of_unreachable(jobs: list[Document]) -> None:
    by_worker: dict[str, list[Document]] = {}
    for job in jobs:
        by_worker.setdefault(job["worker"], []).append(job)
    for worker, there in by_worker.items():
        which = f"job {there[0]['id']} ends"
        if len(there) > 1:
            which = f"{counted(len(there), 'job')} end"
        warn(f"worker `{worker}` is unreachable; {which} when it is back")


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
