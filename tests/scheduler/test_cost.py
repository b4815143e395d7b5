"""A decision costs the shapes it touches, not the jobs that wait.

Counted in calls, not in seconds: the same however many jobs wait.
"""

import gc
import sys
from collections import deque
from types import FrameType

from grass.model.amount_text import WHOLE
from grass.model.resources import Capacity, Request
from grass.scheduler import Scheduler

ONE: Request = (("cpu", WHOLE),)
ROUNDS = 32


class Site:
    """One full worker with 16 cpus, and jobs that wait behind it."""

    def __init__(
        self, requests: list[Request], waiting: int, too_large: int = 0
    ) -> None:
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


class QueuesSite(Site):
    """One full worker whose jobs come from many queues, each with a view of its own."""

    def __init__(self, queues: int, view: Capacity, waiting: int = 2000) -> None:
        self.queues = queues
        self.view = view
        super().__init__([ONE], waiting)

    def enqueue_next(self) -> None:
        """Enqueue one job of the next queue in turn."""
        queue = f"q{self.jobs % self.queues}"
        if self.jobs < self.queues:
            self.scheduler.set_view(queue, "w", self.view)
        self.jobs += 1
        self.scheduler.enqueue(self.jobs, queue, ONE)


def calls(site: Site) -> int:
    """Count the calls that a number of turns make."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    # A collection may call finalizers of others.
    gc.disable()
    sys.setprofile(count)
    try:
        for _ in range(ROUNDS):
            site.turn()
    finally:
        sys.setprofile(None)
        gc.enable()
    assert len(site.running) == 16
    return counted


def test_a_longer_queue_costs_no_more_calls() -> None:
    assert calls(Site([ONE], 10_000)) == calls(Site([ONE], 100))


def test_a_longer_queue_of_many_shapes_costs_no_more_calls() -> None:
    shapes: list[Request] = [
        (("cpu", WHOLE), ("ram", amount * WHOLE)) for amount in range(1, 201)
    ]
    assert calls(Site(shapes, 10_000)) <= 1.05 * calls(Site(shapes, 600))


def test_better_jobs_that_do_not_fit_are_not_examined_again() -> None:
    many = calls(Site([ONE], 100, too_large=999))
    assert many <= 1.5 * calls(Site([ONE], 100, too_large=1))


def test_a_release_costs_no_more_calls_with_many_queues_that_see_the_same() -> None:
    view = {"cpu": {str(unit): WHOLE for unit in range(16)}}
    assert calls(QueuesSite(1000, view)) <= 1.5 * calls(QueuesSite(20, view))


def test_queues_at_their_own_limits_are_not_examined_when_others_release() -> None:
    memory: Request = (("ram", WHOLE),)

    def site(queues: int) -> Site:
        made = Site([(("cpu", WHOLE), ("ram", WHOLE))], 200)
        for number in range(queues):
            queue = f"narrow{number}"
            made.scheduler.set_view(queue, "w", {"ram": {"0": WHOLE}})
            # One of the two runs from now on, and is all that its queue may have.
            made.scheduler.enqueue(10**6 + 2 * number, queue, memory, priority=9)
            made.scheduler.enqueue(10**6 + 2 * number + 1, queue, memory, priority=9)
        assert len(made.scheduler.decide(0.0)) == queues
        made.turn()
        return made

    assert calls(site(500)) <= 1.5 * calls(site(5))


def test_a_new_queue_does_not_reindex_others() -> None:
    view = {"cpu": {str(unit): WHOLE for unit in range(16)}}

    def created(queues: int) -> int:
        site = QueuesSite(queues, view)
        turn = site.turn

        def turn_with_new_queue() -> None:
            site.scheduler.set_view(f"new{site.jobs}", "w", view)
            turn()

        site.turn = turn_with_new_queue  # type: ignore[method-assign]
        return calls(site)

    assert created(1000) <= 1.5 * created(20)
