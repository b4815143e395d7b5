"""Workers that cannot be asked, or take no jobs, in words."""

from collections.abc import Mapping

from grass.broker.core.state import State
from grass.broker.core.workers import cloned_homes, registry
from grass.model.job import Attempt
from grass.model.spec import Spec
from grass.model.times import rfc3339
from grass.model.worker import Worker
from grass.queries.documents import ProspectReply
from grass.scheduler.explanation import Explanation, Feasibility, PlacementObstacle

DISK_FULL = "the broker's disk is full: nothing starts until there is room"
MOST_NAMED = 3
"""Workers that are named one by one."""
_SECOND = 1_000_000


def is_unreachable(state: State, attempt: Attempt) -> bool:
    """Tell whether nobody can be asked how an attempt is: who has it is away."""
    worker = state.workers.get(attempt.worker)
    return (
        worker is None or not worker.connected or cloned_homes.is_apart(state, attempt)
    )


def absence(worker: Worker) -> str:
    """Say that a worker is unreachable, and since when."""
    return f"worker `{worker.name}` is {_gone(worker)}{_since(worker)}"


def nobody(
    state: State, spec: Spec, told: Explanation, former: Mapping[str, str]
) -> str:
    """Say why no worker can run a job at present; `former` names forgotten ones."""
    if spec.worker is not None and spec.worker not in state.workers:
        name = former.get(spec.worker, spec.worker)
        return (
            f"worker `{name}`, the only one that may run it, is forgotten"
            f" (`grass edit {told.job} --worker NAME` chooses another)"
        )
    if not state.workers:
        return "no worker has joined yet; `grass token new` gives a line for one"
    if not told.away:
        return str(told)
    names = [f"`{registry.name_of(state, one)}`" for one in told.away]
    hows = [_how(state, one) for one in told.away]
    if len(names) == 1:
        return f"worker {names[0]}, which could run it, {hows[0]}"
    named = [f"{name} {how}" for name, how in zip(names, hows, strict=True)]
    left = len(named) - MOST_NAMED
    more = [f"and {left} more"] if left > 0 else []
    shown = ", ".join(named[:MOST_NAMED] + more)
    return f"no worker that could run it takes jobs: {shown}"


def prospects(
    state: State, spec: Spec, told: Explanation, former: Mapping[str, str]
) -> list[ProspectReply]:
    """Say for each worker of a job's queue why the job does not start there."""
    found = [_prospect(state, spec, one, former) for one in told.feasibility()]
    return sorted(found, key=lambda one: one.worker)


def _prospect(
    state: State, spec: Spec, one: Feasibility, former: Mapping[str, str]
) -> ProspectReply:
    name, reason, why = registry.name_of(state, one.worker), str(one.obstacle), one.why
    if one.obstacle is PlacementObstacle.PINNED and spec.worker is not None:
        only = former.get(spec.worker) or registry.name_of(state, spec.worker)
        why = f"it may run on `{only}` alone"
    elif one.obstacle is PlacementObstacle.AWAY:
        reason, why = _away(state, one.worker)
    elif one.obstacle is PlacementObstacle.FREE:
        why = "has room for it"
    return ProspectReply(name, reason, why)


def _away(state: State, worker: str) -> tuple[str, str]:
    """Tell in a word and in words why a worker takes no jobs."""
    known = state.workers.get(worker)
    if known is not None and known.connected and known.unable:
        return "unable", _unable(known)
    if known is None or (known.connected and not known.resting):
        return "not-ready", "is not ready yet"
    if known.connected:
        return "drained", "is drained"
    word = "off" if _is_off(known) else "unreachable"
    drained = "drained and " if known.resting else ""
    return word, f"is {drained}{_gone(known)}{_since(known)}"


def _is_off(worker: Worker) -> bool:
    """Tell whether a worker was part of this daemon, which runs without it now."""
    return worker.address is None and not worker.connected


def _moment(at: int) -> str:
    """Write a time to the second."""
    return (rfc3339(at - at % _SECOND) or "").replace(".000Z", "Z")


def _gone(worker: Worker) -> str:
    return "off (`--no-worker`)" if _is_off(worker) else "unreachable"


def _since(worker: Worker) -> str:
    return "" if worker.heard_at is None else f" since {_moment(worker.heard_at)}"


def _how(state: State, worker: str) -> str:
    known = state.workers[worker]
    if known.connected and known.unable:
        return _unable(known)
    how = ["draining"] if known.resting else []
    how += [] if known.connected else [_gone(known)]
    return f"is {' and '.join(how) or 'not ready yet'}"


def _unable(worker: Worker) -> str:
    return f"cannot start jobs: {worker.unable}"
