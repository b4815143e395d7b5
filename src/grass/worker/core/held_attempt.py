"""An attempt as its worker knows it, and how it is told to others."""

import msgspec
from msgspec.structs import replace

from grass.link.messages import Exited, Report, Started, Stop
from grass.model.resources import Allocation
from grass.worker.core.effects import Verb


class Held(msgspec.Struct):
    """An attempt this machine answers for."""

    allocation: Allocation
    after: str | None = None
    """Whose units it takes over; until then it holds nothing."""
    verb: Verb | None = None
    """What the keeper was asked, until it says that it started."""
    started: Started | None = None
    since: float | None = None
    """When it started, by the clock that counts from boot."""
    stopping: bool = False
    suspended: bool = False
    recalled: bool = False
    placed_at: int = 0
    """As its start said; all that is told of it repeats it."""
    sent: bool = False
    """Whether any keeper may have heard of it."""
    begun: bool = True
    """Of one that only the keeper knows: whether it is on record there."""
    exited: Exited | None = None

    @property
    def may_be_given_back(self) -> bool:
        """Tell whether it may not have begun; the keeper knows."""
        asked = self.verb is not None or not self.begun
        return asked and self.started is None and self.exited is None

    def was_placed(self, at: int) -> bool:
        """Tell whether this is the attempt placed then, or that cannot be known."""
        return at == self.placed_at or 0 in (at, self.placed_at)


def asked_again(attempt: str, held: Held, start: Verb) -> list[Verb]:
    """Ask a new keeper for what its predecessor did not live to do.

    Behind whom it follows now, and with all that was wished of it since.
    """
    start["after"] = start["meta"]["after"] = held.after
    verbs = [start]
    if held.suspended:
        verbs.append({"v": "suspend", "id": attempt})
    if held.stopping:
        verbs.append(stop_verb(Stop(attempt, 0.0)))
    return verbs


def stop_verb(wish: Stop) -> Verb:
    """Ask the keeper to end an attempt."""
    return {
        "v": "stop",
        "id": wish.attempt,
        "signal": wish.signal,
        "grace": wish.grace_s,
        "reason": wish.reason,
    }


def report_of(attempt: str, held: Held, now_s: float) -> Report:
    """Give what a `Hello` tells of an attempt that has not ended."""
    started = held.started
    if started is None:
        return Report(
            attempt,
            held.allocation,
            running=False,
            stopping=held.stopping,
            suspended=held.suspended,
            placed_at=held.placed_at,
        )
    return Report(
        attempt=attempt,
        allocation=held.allocation,
        running=True,
        pid=started.pid,
        started_at=started.at,
        output=started.output,
        output_offset=started.output_offset,
        stderr=started.stderr,
        stderr_offset=started.stderr_offset,
        stopping=held.stopping,
        suspended=held.suspended,
        placed_at=held.placed_at,
        ran_s=0.0 if held.since is None else max(0.0, now_s - held.since),
    )


def start_of(started: Started, exited: Exited) -> Started:
    """Give what a `Hello` tells of how an attempt began that has ended."""
    return replace(started, ran_s=exited.ran_s or 0.0)
