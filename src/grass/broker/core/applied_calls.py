"""The calls of one round, and what a defect means for them."""

from typing import Any, NamedTuple

from grass.broker.core.calls import AnyCall, FromWorker, WorkerGone
from grass.broker.core.shell_interface import ReplyTo
from grass.errors import GrassError

UNDECIDED: Any = object()
"""The outcome of a call whose handler has not returned."""


class Applied(NamedTuple):
    """A call, where its reply goes, and the outcome."""

    call: AnyCall
    reply: ReplyTo
    outcome: Any


def split_by_defect(applied: list[Applied]) -> tuple[list[Applied], list[Applied]]:
    """Split calls into those that fail with the defect, and those to apply again.

    Calls with a reply are applied again, if the handler of another call raised. With a
    defect that is not of a single call they would only meet it again.
    """
    if not applied or applied[-1].outcome is not UNDECIDED:
        return applied, []
    others = [one for one in applied[:-1] if one.reply is not None]
    heard = [one for one in applied[:-1] if one.reply is None]
    return [*heard, applied[-1]], others


def workers(applied: list[Applied]) -> set[str]:
    """Return the workers that calls came from, or that disconnected."""
    calls = (one.call for one in applied)
    return {one.worker for one in calls if isinstance(one, FromWorker | WorkerGone)}


def defect() -> GrassError:
    """Return what callers are told of a defect."""
    hint = "see the daemon's log, and please report it"
    return GrassError("something went wrong inside grass", hint)
