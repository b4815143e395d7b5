"""A decision costs the shapes it touches, not the jobs that wait.

Counted in calls, not in seconds: the same steps are taken however long the line is.
"""

import sys
from collections import deque
from types import FrameType

from grass.model.amounts import WHOLE
from grass.model.resources import Request
from grass.scheduler import Scheduler

ONE: Request = (("cpu", WHOLE),)
ROUNDS = 32


class Site:
    """One full worker with 16 cpus, and a line of jobs behind it."""

    def __init__(
        self, requests: list[Request], waiting: int, too_large: int = 0
    ) -> None:
        """Fill the worker; jobs that are too large go first but never fit."""
        self.scheduler = Scheduler(overtakes=10**9)
        self.scheduler.set_queue(
            "default", paused=False, max_running=None, open_to_all=True
        )
        cpus = {str(unit): WHOLE for unit in range(16)}
        self.scheduler.add_worker("w", {"cpu": cpus, "ram": {"0": 10**6 * WHOLE}})
        self.scheduler.occupy("lease", "w", {"ram": {"0": 10**5 * WHOLE}})
        self.requests = requests
        self.jobs = 0
        for number in range(too_large):
            self.enqueue((("cpu", WHOLE), ("ram", 950_000 * WHOLE + number)), 1)
        for _ in range(16 + waiting):
            self.enqueue_next()
        self.running = deque(started.job for started in self.scheduler.decide(0.0))
        for _ in range(ROUNDS):
            self.turn()

    def enqueue(self, request: Request, priority: int = 0) -> None:
        """Enqueue one job."""
        self.jobs += 1
        self.scheduler.enqueue(self.jobs, "default", request, priority)

    def enqueue_next(self) -> None:
        """Enqueue one job of the next request in turn."""
        self.enqueue(self.requests[self.jobs % len(self.requests)])

    def turn(self) -> None:
        """One job ends, the next one starts, another one arrives."""
        self.scheduler.release(self.running.popleft())
        for started in self.scheduler.decide(0.0):
            self.running.append(started.job)
        self.enqueue_next()


def calls(site: Site) -> int:
    """Count the calls that a number of turns make."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for _ in range(ROUNDS):
            site.turn()
    finally:
        sys.setprofile(None)
    assert len(site.running) == 16
    return counted


def test_a_longer_line_costs_no_more_calls() -> None:
    assert calls(Site([ONE], 10_000)) == calls(Site([ONE], 100))


def test_a_longer_line_of_many_shapes_costs_no_more_calls() -> None:
    shapes: list[Request] = [
        (("cpu", WHOLE), ("ram", amount * WHOLE)) for amount in range(1, 201)
    ]
    assert calls(Site(shapes, 10_000)) <= 1.05 * calls(Site(shapes, 600))


def test_better_jobs_that_do_not_fit_are_not_looked_at_again() -> None:
    many = calls(Site([ONE], 100, too_large=999))
    assert many <= 1.5 * calls(Site([ONE], 100, too_large=1))
