"""`grass workers`: the machines that run jobs, and forgetting one that is gone."""

from __future__ import annotations

import sys
from shlex import quote

from grass.cli.parsing.options import (
    BROKER,
    JSON,
    Command,
    Option,
    Values,
    one_word,
    read,
)
from grass.cli.printing.quantities import age, ago, brief, utc_now
from grass.cli.printing.show.summary import gpu_notes
from grass.cli.printing.streams import counted, print_document, say, warn
from grass.cli.printing.table import render, show, this_screen
from grass.cli.printing.wording import TINTS, connection_state, number
from grass.client.client import Client
from grass.client.id_ranges import as_ranges
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from grass.client.json_codec import Document

OPTIONS = (
    Option(
        "--even-if-alive",
        about="with `forget`: run jobs again that may still run there",
    ),
    Option("-y, --yes", about="with `end` and `all`: do not ask"),
    BROKER,
    JSON,
)
HEADER = ("WORKER", "STATE", "ADDRESS", "RUNNING", "HEARD", "LABELS", "FREE")
_TINTS = {**TINTS, "connected": "green", "draining": "yellow"}


def run(words: list[str]) -> int:
    """List the workers, or forget one."""
    values, rest = read(OPTIONS, words)
    if rest[:1] == ["forget"]:
        return _forget(values, one_word(rest[1:], "the worker"))
    if rest and rest[0] in ("foreign", "end", "keep"):
        from grass.cli.commands import foreign_attempts

        return foreign_attempts.run(values, *rest)
    if rest:
        raise UsageError(f"workers knows no `{rest[0]}`", "grass workers forget NAME")
    with Client(broker=values.broker) as client:
        document = client.workers()
    if values.has("json"):
        print_document(document)
    else:
        screen = this_screen()
        show(render(HEADER, rows(document["workers"], utc_now()), screen, _TINTS))
        _warn_of_removed(document["workers"])
        _warn_of_foreign(document["workers"])
        _warn_of_clocks(document["workers"])
        _warn_of_failures(document["workers"])
        for line in gpu_notes(document["workers"]):
            warn(line)
        if not document["workers"]:
            warn("no worker has joined yet; `grass token new` gives a line for one")
    return 0


def rows(workers: Iterable[Document], now: datetime) -> list[list[str]]:
    """Return a row for each worker; fields that a broker leaves out are empty."""
    return [
        [
            str(worker["name"]),
            _state(worker, now),
            worker.get("address") or "",
            str(worker.get("running") or 0),
            ago(worker.get("heard_at"), now),
            ",".join(worker.get("labels") or ()),
            _free(worker),
        ]
        for worker in workers
    ]


def _state(worker: Document, now: datetime) -> str:
    if not worker["connected"]:
        since = worker.get("unreachable_since")
        lasts = f" for {brief(age(since, now))}" if since else ""
        return f"{connection_state(worker)}{lasts}"
    if worker.get("unable"):
        return f"cannot start jobs: {worker['unable']}"
    if worker.get("draining_reason"):
        return f"draining: {worker['draining_reason']}"
    return (
        "draining" if worker.get("draining") or worker.get("resting") else "connected"
    )


def _warn_of_removed(workers: list[Document]) -> None:
    """Warn of a worker that the broker's daemon had before."""
    at_home = [one for one in workers if one.get("address", "unknown") is None]
    own = [one["name"] for one in at_home if one["connected"]]
    now = f"has another identity, {own[0]}," if own else "runs with --no-worker"
    for worker in workers:
        if connection_state(worker) == "off":
            name = worker["name"]
            warn(
                f"worker {name} was part of the broker's daemon, which {now} now;"
                f" `grass workers forget {quote(name)}` removes it"
            )


def _warn_of_foreign(workers: Iterable[Document]) -> None:
    """Warn of attempts that hold units and are in no list of jobs."""
    for worker in workers:
        undecided = [one for one in worker.get("foreign") or () if not one["kept"]]
        if undecided:
            warn(
                f"{counted(len(undecided), 'attempt')} on worker {worker['name']}"
                " that the database knows nothing of: see `grass workers foreign`"
            )


def _warn_of_failures(workers: Iterable[Document]) -> None:
    """Warn of workers that get no jobs of a kind for a while."""
    for worker in workers:
        for one in worker.get("held_back") or ():
            name = worker["name"]
            warn(
                f"worker {name} gets no `{one['jobs']}` for some minutes:"
                f" {one['reason']}; `grass resume {quote(name)}` tries it again now"
            )


def _warn_of_clocks(workers: Iterable[Document]) -> None:
    """Warn of clocks that are wrong, as they show in the output of jobs."""
    for worker in workers:
        skew_s = worker.get("clock_skew_s")
        if skew_s and worker["connected"]:
            side = "ahead of" if skew_s > 0 else "behind"
            warn(
                f"the clock of worker {worker['name']} is {brief(abs(skew_s))} {side}"
                " the broker's; set one of them right"
            )


def _free(worker: Document) -> str:
    """Write the free amount of each kind: `cpu 12/16, gpu 0.5/2`."""
    free = worker.get("free") or {}
    return ", ".join(
        f"{kind} {number(sum(free.get(kind, {}).values()), kind)}/"
        f"{number(sum(units.values()), kind)}"
        for kind, units in (worker.get("capacity") or {}).items()
    )


def _forget(values: Values, name: str) -> int:
    with Client(broker=values.broker) as client:
        done = client.forget_worker(name)
        held = done.get("held") or []
        if held and (values.has("even_if_alive") or _confirmed(name, held)):
            client.release(as_ranges(held))
            done["held"] = held = []
    if values.has("json"):
        print_document({"worker": name, **done})
        return 0
    for warning in done.get("warnings", ()):
        warn(warning)
    if held:
        which = " ".join(as_ranges(held))
        warn(
            f"{counted(len(held), 'job')} may still run there and will not run again"
            f" before you say so: grass release {which}"
        )
    lost = len(done.get("jobs") or ()) - len(held)
    went = [f"{counted(lost, 'job')} lost" if lost else "no job lost"]
    if held:
        went.append(f"{counted(len(held), 'job')} held")
    queues = done.get("queues") or ()
    if queues:
        views = "its view" if len(queues) == 1 else "its views"
        went.append(f"{views} of {', '.join(queues)} gone")
    say(f"forgot worker {name}: {', '.join(went)}")
    return 0


def _confirmed(name: str, held: list[int]) -> bool:
    """Ask whether to run jobs again that may be alive; no without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    jobs = counted(len(held), "job")
    sys.stderr.write(
        f"{jobs} with --retry-lost may still run on {name}."
        " Run again all the same, maybe twice at a time? [y/N] "
    )
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


COMMAND = Command(
    usage="[OPTIONS] [forget [--even-if-alive] WORKER|foreign|end WORKER ATTEMPT...|"
    "keep WORKER ATTEMPT...]",
    about=(
        "Show the workers: whether the broker reaches them, from where they called, "
        "how many jobs run there, when they were last heard of, what is free. `forget` "
        "gives up one that is gone for good: what ran there is lost, its queues' views "
        "and its token go. Jobs with --retry-lost are held, as they may still run "
        "there: `release` or --even-if-alive runs them again. `foreign` lists attempts "
        "that run there and that the database knows nothing of, as after `grass "
        "restore`: they keep their units. `end` stops them, `keep` lets them run to "
        "their end without further reminders; `all` names those of this cluster, and "
        "`end` asks first. Those of another cluster are named one by one."
    ),
    options=OPTIONS,
    examples=(
        "grass workers",
        "grass workers --json",
        "grass workers forget desk",
        "grass workers foreign",
        "grass workers end desk 41.1",
        "grass workers end --yes desk all",
        "grass workers keep desk all",
    ),
    run=run,
)
