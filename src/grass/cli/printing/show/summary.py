"""The rows of `show` that are not jobs: workers and queues, and the line below all."""

from __future__ import annotations

from grass.cli.printing.quantities import in_local_time, size_text
from grass.cli.printing.streams import counted
from grass.cli.printing.styled import Styled
from grass.cli.printing.wording import IN_ORDER, TINTS, connection_state, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from grass.client.json_codec import Document

WORKERS = ("WORKER", "KIND", "ORIGIN", "FREE/CAPACITY OF EACH UNIT")
QUEUES = ("QUEUE", "RUNNING", "WAITING", "LIMITS", "COMMAND")
DRAINED = "drained"
FAULTY = "faulty"
STRANGERS = "strangers"
MOST_NAMED = 3
"""Workers that are named one by one."""


def full_name(worker: Document) -> str:
    """Return a worker's name, and why it starts no jobs."""
    name = str(worker["name"])
    if not worker["connected"]:
        return f"{name} ({connection_state(worker)})"
    if worker.get("unable"):
        return f"{name} (cannot start jobs: {worker['unable']})"
    held = ", ".join(f"`{one['jobs']}`" for one in worker.get("held_back") or ())
    return f"{name} (held back from {held}, which fail there)" if held else name


def worker_rows(workers: Iterable[Document]) -> list[list[str]]:
    """Return a row for each worker, kind and origin."""
    rows = []
    for worker in workers:
        name = full_name(worker)
        for kind, units in worker["capacity"].items():
            origins = worker["origin"].get(kind, {})
            shares = _shares(worker, kind)
            for origin in dict.fromkeys(origins.get(unit, "") for unit in units):
                chosen = [unit for unit in units if origins.get(unit, "") == origin]
                text = "  ".join(folded({unit: shares[unit] for unit in chosen}))
                rows.append([name, kind, origin, text])
                name = ""
    return rows


def folded(shares: Mapping[str, str]) -> list[str]:
    """Write units, with a run of equal ones as a range: `0-15: 1/1`."""
    runs: list[tuple[str, str, str]] = []
    for unit, share in shares.items():
        if runs and runs[-1][2] == share and _follows(runs[-1][1], unit):
            runs[-1] = (runs[-1][0], unit, share)
        else:
            runs.append((unit, unit, share))
    return [
        f"{first}: {share}" if first == last else f"{first}-{last}: {share}"
        for first, last, share in runs
    ]


def queue_rows(queues: Iterable[Document]) -> list[list[str]]:
    """Return a row for each queue."""
    return [
        [
            queue["name"],
            str(queue["running"]),
            str(queue["waiting"]),
            _limits(queue),
            next((" ".join(view["command"]) for view in queue["views"].values()), ""),
        ]
        for queue in queues
    ]


def notes(queues: Iterable[Document]) -> list[str]:
    """Return a line for each queue that paused by itself, with the reason."""
    return [
        f"queue {queue['name']} paused by itself: {queue['paused_reason']} "
        f"(`grass resume {queue['name']}` goes on)"
        for queue in queues
        if queue["paused"] and queue.get("paused_reason")
    ]


def gpu_notes(workers: Iterable[Document]) -> list[str]:
    """Return a line for each GPU that has a fault."""
    return [
        f"gpu {unit} of {worker['name']} takes no jobs: {in_local_time(fault['why'])}"
        for worker in workers
        for unit, fault in (worker.get("faults") or {}).items()
    ]


def elsewhere(daemon: Document) -> str | None:
    """Return a line about a daemon that works for another broker, or None."""
    broker = daemon.get("broker")
    if broker is None:
        return None
    running = daemon["jobs"].get("running") or 0
    here = f"; {counted(running, 'job')} run{'s' if running == 1 else ''} here"
    return (
        f"this daemon works for the broker at {broker['address']}: {broker['link']}"
        + (here if running else "")
    )


def summary(daemon: Document, totals: Mapping[str, int]) -> list[Styled]:
    """Write the number of jobs by state, the size of all output, and what is wrong."""
    pieces: list[tuple[str, str]] = []
    for state in IN_ORDER:
        if count := totals.get(state):
            pieces += [(", " if pieces else "", ""), (f"{count} {state}", tint(state))]
    parts = [Styled(*(pieces or [("no jobs yet", "")]))]
    parts.append(Styled((f"output takes {size_text(daemon['output_bytes'])}", "dim")))
    if daemon["paused"]:
        parts.append(Styled(("paused, `grass resume` starts jobs again", "yellow")))
    if daemon.get("full"):
        parts.append(Styled(("the disk is full, `grass prune` makes room", "red")))
    return parts


def tint(state: str) -> str:
    """Return a state's colour in a line of text."""
    return "" if state == "succeeded" else TINTS.get(state, "")


def _shares(worker: Document, kind: str) -> dict[str, str]:
    free = worker["free"].get(kind, {})
    marks = unit_marks(worker, kind)
    return {
        unit: " ".join(
            [
                f"{number(free.get(unit, 0), kind)}/{number(amount, kind)}",
                *(word for word, units in marks.items() if unit in units),
            ]
        )
        for unit, amount in worker["capacity"][kind].items()
    }


def unit_marks(worker: Document, kind: str) -> dict[str, list[str]]:
    """Return which units of a kind are drained, have a fault, or have strangers."""
    units = worker["capacity"][kind]
    drained = worker.get("drained", {}).get(kind, ())
    faults = worker.get("faults", {}) if kind in ("gpu", "vram") else ()
    strangers = worker.get("strangers", {}) if kind == "vram" else ()
    marks = {DRAINED: drained, FAULTY: faults, STRANGERS: strangers}
    return {word: [unit for unit in units if unit in on] for word, on in marks.items()}


def _follows(one: str, other: str) -> bool:
    return one.isdecimal() and other.isdecimal() and int(other) == int(one) + 1


def _limits(queue: Document) -> str:
    limits = ["paused"] if queue["paused"] else []
    if queue["max_running"] is not None:
        limits.append(f"max {queue['max_running']}")
    if queue.get("max_fails") is not None:
        limits.append(f"fails {queue.get('fails', 0)}/{queue['max_fails']}")
    if queue.get("enforce") is not None:
        limits.append("enforced")
    return ", ".join([*limits, *_views(queue["views"])])


def _views(views: Mapping[str, Document]) -> list[str]:
    """Write the capacity of views; of several, with their workers."""
    amounts = {
        worker: [
            f"{kind} {number(sum(units.values()), kind)}"
            for kind, units in view["capacity"].items()
        ]
        for worker, view in views.items()
    }
    if len(views) == 1:
        return [one for known in amounts.values() for one in known]
    named = [f"{', '.join(has)} on {at}" for at, has in amounts.items() if has]
    left = len(named) - MOST_NAMED
    return [*named[:MOST_NAMED], *([f"and {left} more"] if left > 0 else [])]
