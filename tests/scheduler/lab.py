"""A scheduler with short calls, whose every step is followed by a full check."""

from typing import Any

from grass.model.gpu_details import GpuDetails
from grass.model.resources import (
    Allocation,
    Capacity,
    Policy,
    capacity_from,
    request_from,
)
from grass.scheduler import Explanation, Placement, Scheduler

Started = dict[int, tuple[str, Allocation]]


def whole(amount: float) -> int:
    """Return units as an amount."""
    return round(amount * 10_000)


class Lab:
    """Requests and capacities as people write them; jobs numbered from 1."""

    def __init__(self, overtakes: int = 100, patience_s: float = 900.0) -> None:
        """Start with the queue `default`, which every worker serves."""
        self.scheduler = Scheduler(overtakes=overtakes, patience_s=patience_s)
        self.queue("default", open_to_all=True)
        self.now = 0.0
        self.last = 0

    def worker(
        self,
        name: str,
        capacity: str,
        *labels: str,
        gpus: dict[str, GpuDetails] | None = None,
    ) -> None:
        """Add a worker or change its capacity."""
        amounts = capacity_from(capacity)
        self.scheduler.add_worker(name, amounts, frozenset(labels), gpus)
        self.scheduler.check()

    def queue(
        self,
        name: str,
        *,
        paused: bool = False,
        max_running: int | None = None,
        open_to_all: bool = False,
    ) -> None:
        """Add a queue or change it."""
        self.scheduler.set_queue(
            name, paused=paused, max_running=max_running, open_to_all=open_to_all
        )
        self.scheduler.check()

    def view(self, queue: str, worker: str, capacity: str | None) -> None:
        """Set a queue's view on a worker."""
        limits: Capacity | None = None if capacity is None else capacity_from(capacity)
        self.scheduler.set_view(queue, worker, limits)
        self.scheduler.check()

    def enqueue(
        self,
        request: str,
        priority: int = 0,
        *,
        queue: str = "default",
        worker: str | None = None,
        labels: tuple[str, ...] = (),
        limiters: tuple[str, ...] = (),
        gpu_model: str | None = None,
        policy: Policy | None = None,
        learned: str | None = None,
        process: int | None = None,
        time_s: float | None = None,
    ) -> int:
        """Enqueue the next job and return its id."""
        self.last += 1
        self.scheduler.enqueue(
            self.last,
            queue,
            request_from(request),
            priority,
            worker=worker,
            labels=frozenset(labels),
            limiters=limiters,
            gpu_model=gpu_model,
            policy=policy,
            learned=learned,
            process=process,
            time_s=time_s,
        )
        self.scheduler.check()
        return self.last

    def profile(self, job_type: str, **amounts: float) -> Started:
        """Set the GiB that a type needs by model, then decide."""
        known = {model: whole(amount) for model, amount in amounts.items()}
        self.scheduler.set_profile(job_type, known)
        self.scheduler.check()
        return self.decide()

    def decide(self) -> Started:
        """Decide once and return the started jobs with worker and units."""
        placements: list[Placement] = self.scheduler.decide(self.now)
        self.scheduler.check()
        return {job: (worker, units) for job, worker, units in placements}

    def release(self, *holders: int | str) -> Started:
        """Release holders, then decide."""
        for holder in holders:
            self.scheduler.release(holder)
            self.scheduler.check()
        return self.decide()

    def start(self, request: str, **options: Any) -> Allocation:
        """Enqueue a job that must start at once, and return its units."""
        job = self.enqueue(request, **options)
        return self.decide()[job][1]

    def explain(self, job: int) -> Explanation:
        """Ask why a job waits."""
        return self.scheduler.explain(job, self.now)
