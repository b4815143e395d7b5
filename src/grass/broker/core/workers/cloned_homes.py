"""Homes that were copied: several machines that say they are one worker.

While one of them is connected the others are refused (`links`). Where the first is only
cut off, a copy may come in its place. What the first was running lives on there, so
none of it may be lost, given back or run again: it is set apart, unreachable, until the
home that has it is back, or the worker is forgotten. The worker in the broker's own
daemon has no copies: it lives where the database does.

A disk that was copied whole, as a snapshot of a virtual machine is, keeps all marks of
the first. Then only the boot tells: another one is a restart, but none comes back.
"""

from grass.broker.core.state import State
from grass.link.messages import Hello
from grass.model.job import Attempt
from grass.model.worker import Worker

COPIED = (
    "another machine uses this worker's identity",
    "remove worker-id from the copy's state directory and join again",
)
NAMELESS = "nameless"
"""The instance of a home that does not say it, where another has said its own."""
MOST_HOMES = 1000
MOST_BOOTS = 32
LONGEST_MARK = 64


class Boots:
    """The boots from which each home has called, the present one last."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], list[str]] = {}

    def note(self, worker: str, instance: str, boot: str) -> None:
        """Note from which boot a home calls; the oldest are forgotten."""
        home, boot = (worker, instance[:LONGEST_MARK]), boot[:LONGEST_MARK]
        boots = self._known.pop(home, [])
        if len(self._known) >= MOST_HOMES:
            del self._known[next(iter(self._known))]
        self._known[home] = boots
        if boot not in boots[-1:]:
            boots.append(boot)
        del boots[:-MOST_BOOTS]

    def is_over(self, worker: str, instance: str, boot: str) -> bool:
        """Tell whether a home has called from another boot since this one."""
        boots = self._known.get((worker, instance[:LONGEST_MARK]), [])
        return boot[:LONGEST_MARK] in boots[:-1]


def is_apart(state: State, attempt: Attempt) -> bool:
    """Tell whether another copy has an attempt than the one that called last."""
    worker = state.workers.get(attempt.worker)
    return worker is not None and worker.is_apart(state.attempt_id(attempt))


def is_another(worker: Worker, instance: str) -> bool:
    """Tell whether this is another home than before.

    One that does not say which it is, is another if the one before did.
    """
    return worker.instance not in ("", instance or NAMELESS)


def sort_out(state: State, worker: Worker, message: Hello) -> None:
    """Set apart what other homes have, and take back what this one has.

    The worker in the broker's own daemon shares its home with the database: whatever
    became of the mark there, nobody else has what it is to run.
    """
    if worker.address is None:
        worker.instance, worker.apart = message.instance, {}
        return
    other, before = is_another(worker, message.instance), worker.instance
    worker.instance = message.instance or (NAMELESS if before else "")
    if not other and not worker.apart:
        return
    live = {state.attempt_id(one): None for one in state.attempts_on(worker.id)}
    told = {one.attempt for one in message.running}
    told.update(one.attempt for one in message.exited)
    told.update(worker.apart.get(worker.instance, ()))
    apart = {
        instance: [name for name in names if name in live and name not in told]
        for instance, names in worker.apart.items()
        if instance != worker.instance
    }
    if other:
        known = told.union(*apart.values())
        apart.setdefault(before, []).extend(one for one in live if one not in known)
    worker.apart = {instance: names for instance, names in apart.items() if names}
