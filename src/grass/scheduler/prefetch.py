"""Relays: jobs that take over a holder's units the moment it lets go.

For very short jobs the way from an end to the next start is longer than the job, so
the next job of the same shape may be decided ahead: it follows a holder, and when the
holder is released the units pass to it without being free in between. Units are never
counted twice, and a follower holds nothing before its turn. Whether that is fair is
checked when it is decided: only while a single shape waits, so nobody is overtaken.
"""

from grass.model.resources import Allocation
from grass.scheduler.shapes import Shape
from grass.scheduler.worker import Hold, Holder


class Relays:
    """Who follows whom."""

    def __init__(self) -> None:
        self.followers: dict[Holder, int] = {}
        self.leaders: dict[int, Holder] = {}

    def last_of(self, holder: Holder) -> tuple[Holder, int]:
        """Return the end of a holder's line, and how many follow it."""
        count = 0
        while (follower := self.followers.get(holder)) is not None:
            holder = follower
            count += 1
        return holder, count

    def first_of(self, job: int) -> Holder:
        """Return the holder whose line a follower stands in."""
        holder: Holder = job
        while isinstance(holder, int) and holder in self.leaders:
            holder = self.leaders[holder]
        return holder

    def follow(self, job: int, leader: Holder) -> None:
        """Put a job behind a holder or another follower, which nobody follows yet."""
        assert leader not in self.followers
        self.followers[leader] = job
        self.leaders[job] = leader

    def step_out(self, job: int) -> None:
        """Take a follower out of its line; who is behind it moves up."""
        leader = self.leaders.pop(job)
        del self.followers[leader]
        behind = self.followers.pop(job, None)
        if behind is not None:
            self.followers[leader] = behind
            self.leaders[behind] = leader

    def heir(self, holder: Holder) -> int | None:
        """Take out the job whose turn it is when a holder lets go."""
        heir = self.followers.pop(holder, None)
        if heir is not None:
            del self.leaders[heir]
        return heir


def may_follow(shape: Shape, hold: Hold) -> bool:
    """Tell whether the next job of a shape may take over exactly what is held."""
    worker = hold.worker
    if shape.queue is not hold.queue:
        return False
    if shape.limiter is not None or hold.limiter is not None:
        return False
    if (
        shape.queue.paused
        or worker.away
        or worker.leaving
        or any(worker.drained.values())
    ):
        return False
    if shape.key.worker not in (None, worker.name):
        return False
    return shape.key.labels <= worker.labels and _totals(hold.allocation) == dict(
        shape.request
    )


def _totals(allocation: Allocation) -> dict[str, int]:
    return {kind: sum(units.values()) for kind, units in allocation.items()}
