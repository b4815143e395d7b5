"""Workers that cannot be asked, or take no jobs, in words."""

from collections.abc import Mapping

from grass.broker import fleet
from grass.broker.state import State
from grass.model.job import Spec
from grass.model.times import rfc3339
from grass.scheduler.explain import Explanation

MOST_NAMED = 3
"""Workers that are named one by one."""
_SECOND = 1_000_000


def absence(state: State, worker: str) -> str:
    """Say that a worker is unreachable, and since when."""
    known = state.workers.get(worker)
    at = None if known is None else known.heard_at
    since = "" if at is None else f" since {moment(at)}"
    return f"worker `{fleet.name_of(state, worker)}` is unreachable{since}"


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
    names = [f"`{fleet.name_of(state, one)}`" for one in told.away]
    hows = [_how(state, one) for one in told.away]
    if len(names) == 1:
        return f"worker {names[0]}, which could run it, is {hows[0]}"
    named = [f"{name} is {how}" for name, how in zip(names, hows, strict=True)]
    left = len(named) - MOST_NAMED
    more = [f"and {left} more"] if left > 0 else []
    shown = ", ".join(named[:MOST_NAMED] + more)
    return f"no worker that could run it takes jobs: {shown}"


def moment(at: int) -> str:
    """Write a time to the second."""
    return (rfc3339(at - at % _SECOND) or "").replace(".000Z", "Z")


def _how(state: State, worker: str) -> str:
    known = state.workers[worker]
    how = ["draining"] if known.resting else []
    how += [] if known.connected else ["unreachable"]
    return " and ".join(how) or "not ready yet"
