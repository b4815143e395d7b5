"""Output of pruned jobs that workers are to remove: stored until it is removed.

A removal is the output, on one worker, of the jobs that one call forgot. It is written
in the transaction that forgets them and deleted when the worker has confirmed that the
files are removed, so neither a crash nor an absent worker leaves output behind. Paths
stay in the store; memory has the bytes of each removal.

A worker gets one removal at a time. What it could not remove is tried again when it
connects or when more of its output is to go. A worker of version 0.1 confirms nothing:
what was sent to it counts as removed.
"""

from collections import defaultdict
from collections.abc import Iterable

from grass.broker.core.state import State
from grass.link.messages import Hello, Removed
from grass.store.changes import Removal
from grass.store.interface import JobDetails

LONGEST_PATH = 4096
"""No path on Linux is longer; a worker may report anything."""


def add(state: State, gone: Iterable[JobDetails]) -> None:
    """Have the output of pruned jobs removed; files that the user named stay.

    The bytes of a worker that is forgotten, too, are out of reach and not counted.
    """
    paths: dict[str, list[str]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for details in gone:
        for attempt in details.attempts:
            is_own = details.spec.output is None
            # A worker removes the history of what was used with its own output.
            path = attempt.output if is_own else attempt.usage
            goes = _can_go(state, attempt.worker, path)
            if path and goes:
                paths[attempt.worker].append(path)
            if goes and is_own:
                sizes[attempt.worker] += attempt.output_bytes
            else:
                state.totals.output_bytes -= attempt.output_bytes
    for worker, files in paths.items():
        _add(state, worker, files, sizes[worker])


def _can_go(state: State, worker: str, path: str | None) -> bool:
    return 0 < len(path or "") <= LONGEST_PATH and worker in state.workers


def _add(state: State, worker: str, files: list[str], size: int) -> None:
    known = state.removals
    known.last += 1
    state.batch.changes.meta["last_removal"] = str(known.last)
    state.batch.changes.removals.append(Removal(known.last, worker, tuple(files), size))
    known.waiting.setdefault(worker, {})[known.last] = size
    known.failed.pop(worker, None)


def due(state: State) -> list[tuple[str, int]]:
    """Return one removal for each connected worker that has none to answer."""
    known, found = state.removals, []
    for worker, waiting in known.waiting.items():
        there = worker in state.workers and state.workers[worker].connected
        if there and worker not in known.sent:
            failed = known.failed.get(worker, ())
            number = next((one for one in waiting if one not in failed), None)
            if number is not None:
                found.append((worker, number))
    return found


def sent(state: State, worker: str, number: int) -> None:
    """Note that a removal was sent."""
    if worker in state.removals.silent:
        _gone(state, worker, number)
    else:
        state.removals.sent[worker] = number


def removed(state: State, worker: str, message: Removed) -> None:
    """Forget a removal whose files are gone; keep one that failed."""
    known = state.removals
    if known.sent.get(worker) != message.number:
        return
    del known.sent[worker]
    if not message.left:
        known.logged.discard(worker)
        _gone(state, worker, message.number)
        return
    known.failed.setdefault(worker, set()).add(message.number)
    if worker not in known.logged:
        known.logged.add(worker)
        name = state.workers[worker].name
        state.batch.log(
            "output.not_removed", worker=name, files=message.left, error=message.reason
        )


def connected(state: State, message: Hello) -> None:
    """Send removals to a worker again: an answer may have been lost."""
    known = state.removals
    known.sent.pop(message.worker, None)
    known.failed.pop(message.worker, None)
    known.silent.discard(message.worker)
    if not message.confirms_removals:
        known.silent.add(message.worker)


def drop(state: State, worker: str) -> None:
    """Drop the removals of a worker that is forgotten."""
    for number in list(state.removals.waiting.get(worker, ())):
        _gone(state, worker, number)


def _gone(state: State, worker: str, number: int) -> None:
    waiting = state.removals.waiting[worker]
    state.totals.output_bytes -= waiting.pop(number)
    if not waiting:
        del state.removals.waiting[worker]
    state.batch.changes.removed_removals.append(number)
