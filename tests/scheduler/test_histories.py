"""Long histories with many shapes, against the oracle."""

import random

import pytest

from grass.model.resources import Request
from grass.scheduler import Scheduler

from .oracle import Oracle, Waiting


class History:
    """Jobs of many sizes come, start, end and are cancelled on a few workers."""

    def __init__(self, seed: int, workers: int) -> None:
        self.chance = random.Random(seed)
        self.scheduler = Scheduler(overtakes=10**9)
        self.oracle = Oracle()
        self.jobs = 0
        self.scheduler.set_queue(
            "default", paused=False, max_running=None, open_to_all=True
        )
        for number in range(workers):
            name = f"w{number}"
            cpus = {str(unit): 10_000 for unit in range(4)}
            capacity = {"cpu": cpus, "ram": {"0": 4_000}, "disk": {"0": 50, "1": 90}}
            self.scheduler.add_worker(name, capacity)
            self.oracle.capacity[name] = capacity
            limits = {"cpu": {"1": 10_000, "2": 5_000}}
            self.scheduler.set_view("q", name, limits)
            self.oracle.views["q", name] = limits

    def enqueue(self) -> None:
        """Enqueue a job, of some distinct shape as often as not."""
        chance = self.chance
        cpu = chance.choice([5_000, 10_000, 10_000, 15_000, 40_000])
        request: Request = (("cpu", cpu), ("ram", chance.randrange(1, 1_500)))
        if chance.random() < 0.2:
            request = (("cpu", cpu), ("disk", chance.randrange(1, 140)))
        queue = "q" if chance.random() < 0.3 else "default"
        priority = chance.choice([0, 0, 0, 0, 1, 2])
        for _ in range(chance.choice([1, 1, 3])):
            self.jobs += 1
            self.scheduler.enqueue(self.jobs, queue, request, priority)
            waiting = Waiting(queue, request, priority, None)
            self.oracle.waiting[self.jobs] = waiting

    def cancel(self) -> None:
        """Cancel a share of what waits."""
        for job in list(self.oracle.waiting):
            if self.chance.random() < 0.5:
                self.scheduler.remove(job)
                del self.oracle.waiting[job]

    def release(self) -> None:
        """End one job."""
        if self.oracle.running:
            job = self.chance.choice(sorted(self.oracle.running))
            self.scheduler.release(job)
            del self.oracle.running[job]

    def decide(self) -> None:
        """Start jobs; nothing that could start may be left."""
        for job, worker, allocation in self.scheduler.decide(0.0):
            waiting = self.oracle.waiting.pop(job)
            assert self.oracle.fits(waiting, worker)
            self.oracle.running[job] = (waiting, worker, allocation)
        self.scheduler.check()
        assert self.oracle.startable() == []


@pytest.mark.parametrize(("seed", "workers"), [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_nothing_startable_waits_in_a_long_history(seed: int, workers: int) -> None:
    history = History(seed, workers)
    for number in range(150):
        history.enqueue()
        history.enqueue()
        history.release()
        history.decide()
        if number % 70 == 69:
            history.cancel()
    assert len(history.oracle.waiting) > 50
    while history.oracle.running:
        history.release()
        history.decide()
        history.cancel()
    free = [history.scheduler.free(name) for name in history.oracle.capacity]
    assert free == list(history.oracle.capacity.values())
