"""What the rules say of jobs, in the simplest words: no heaps, no indices, no store.

Everything is looked at anew after every step. Each job takes one unit, so who starts
next follows from priority and id alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from grass.errors import GrassError, NeverFits, NotFound, Refused

UNSTARTED = ("held", "waiting", "queued")
ENDED = ("succeeded", "failed", "cancelled", "lost")
Errors = set[type[GrassError]]


@dataclass
class ModelJob:
    """One job as a person would describe it."""

    id: int
    queue: str = "default"
    priority: int = 0
    after: tuple[tuple[int, str], ...] = ()
    begin_at: int | None = None
    retries: int = 0
    backoff_s: float = 0.0
    retry_on: tuple[str, ...] = ()
    retry_lost: int = 0
    array: int | None = None
    at_most: int | None = None
    max_fails: int | None = None
    state: str = "waiting"
    met: bool = False
    not_before: int | None = None
    failures: int = 0
    losses: int = 0
    attempts: int = 0
    begun: bool = False
    stopping: bool = False
    suspended: bool = False


@dataclass
class ModelQueue:
    """A queue that may pause by itself."""

    max_fails: int | None = None
    paused: bool = False
    fails: int = 0


@dataclass
class JobModel:
    """All jobs, all queues, and one worker with a few equal units."""

    units: int
    jobs: dict[int, ModelJob] = field(default_factory=dict)
    queues: dict[str, ModelQueue] = field(default_factory=dict)
    array_fails: dict[int, int] = field(default_factory=dict)
    paused: bool = False
    here: bool = True

    def state(self, job: int) -> str | None:
        return self.jobs[job].state if job in self.jobs else None

    def in_state(self, *states: str) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.state in states]

    def advance(self, now: int) -> list[int]:
        """Let everything follow from what has happened; return who starts."""
        self.catch_up(now)
        return self._start()

    def catch_up(self, now: int) -> None:
        """Let go on who may start by now, and cancel who never can."""
        while self._one_goes_on(now):
            pass

    def _one_goes_on(self, now: int) -> bool:
        for job in self.in_state("held", "waiting"):
            if not job.met and self._hopeless(job.after):
                self.end(job, "cancelled")
                return True
            late = max(job.begin_at or 0, job.not_before or 0) > now
            if job.state == "waiting" and not late and self._may_go(job):
                job.state, job.met = "queued", True
                return True
        return False

    def _may_go(self, job: ModelJob) -> bool:
        return job.met or all(self.state(other) in ENDED for other, _ in job.after)

    def _hopeless(self, after: Iterable[tuple[int, str]]) -> bool:
        return any(
            self.state(other) in ENDED and need not in ("any", self.state(other))
            for other, need in after
        )

    def _start(self) -> list[int]:
        started: list[int] = []
        if self.paused or not self.here:
            return started
        for job in sorted(self.in_state("queued"), key=lambda j: (-j.priority, j.id)):
            full = len(self.in_state("running")) >= self.units
            if not full and not self.queues[job.queue].paused and self._under_cap(job):
                job.state, job.attempts, job.begun = "running", job.attempts + 1, False
                started.append(job.id)
        return started

    def _under_cap(self, job: ModelJob) -> bool:
        members = [one for one in self.in_state("running") if one.array == job.array]
        return job.array is None or job.at_most is None or len(members) < job.at_most

    def check_after(self, job: int, after: Iterable[tuple[int, str]]) -> Errors:
        """Say why a job cannot wait for others."""
        errors: Errors = set()
        if any(self.state(other) is None for other, _ in after):
            errors.add(NotFound)
        if self._hopeless(after):
            errors.add(NeverFits)
        if self._reaches(job, after, set()):
            errors.add(Refused)
        return errors

    def _reaches(
        self, job: int, after: Iterable[tuple[int, str]], seen: set[int]
    ) -> bool:
        for other, _ in after:
            if other == job:
                return True
            known = self.jobs.get(other)
            if other in seen or known is None or known.met:
                continue
            seen.add(other)
            waits = known.state in ("held", "waiting")
            if waits and self._reaches(job, known.after, seen):
                return True
        return False

    def enqueue(self, first: int, count: int, fields: dict[str, Any]) -> Errors:
        """Add a job, or an array of several."""
        hold = fields.pop("hold")
        errors = self.check_after(0, fields["after"]) - {NeverFits}
        if errors:
            return errors
        for number in range(first, first + max(count, 1)):
            array = first if count else None
            state = "held" if hold else "waiting"
            self.jobs[number] = ModelJob(number, array=array, state=state, **fields)
        return errors

    def cancel(self, jobs: list[int]) -> list[int]:
        touched = [job for job in jobs if self.state(job) not in (None, *ENDED)]
        for number in touched:
            if self.jobs[number].state == "running":
                self.jobs[number].stopping = True
            else:
                self.end(self.jobs[number], "cancelled")
        return touched

    def hold(self, jobs: list[int]) -> list[int]:
        touched = [job for job in jobs if self.state(job) in ("waiting", "queued")]
        for job in touched:
            self.jobs[job].state = "held"
        return touched

    def release(self, jobs: list[int]) -> list[int]:
        touched = [job for job in jobs if self.state(job) == "held"]
        for job in touched:
            self.jobs[job].state = "waiting"
        return touched

    def suspend(self, jobs: list[int]) -> list[int]:
        running = [self.jobs[job] for job in jobs if self.state(job) == "running"]
        touched = [job for job in running if not job.suspended and not job.stopping]
        for job in touched:
            job.suspended = True
        return [job.id for job in touched]

    def go_on(self, jobs: list[int]) -> list[int]:
        touched = [job for job in jobs if job in self.jobs and self.jobs[job].suspended]
        for job in touched:
            self.jobs[job].suspended = False
        return touched

    def edit(self, jobs: list[int], changes: dict[str, Any]) -> Errors:
        errors: Errors = set()
        for job in jobs:
            if self.state(job) not in UNSTARTED:
                errors.add(Refused)
            elif "after" in changes:
                errors |= self.check_after(job, changes["after"])
        for job in [] if errors else jobs:
            self._change(self.jobs[job], changes)
            if self.jobs[job].state == "queued":
                self.jobs[job].state = "waiting"
        return errors

    def _change(self, job: ModelJob, changes: dict[str, Any]) -> None:
        if changes.get("after", job.after) != job.after:
            job.met = False
        for name, value in changes.items():
            setattr(job, name, value)

    def rerun(
        self, jobs: list[int], changes: dict[str, Any], *, hold: bool
    ) -> tuple[list[int], Errors]:
        """Run ended jobs again; those that have not ended are left alone."""
        again = [self.jobs[job] for job in jobs if self.state(job) in ENDED]
        errors: Errors = set()
        if any(self.state(job) is None for job in jobs):
            errors.add(NotFound)
        elif not again and len(jobs) == 1:
            errors.add(Refused)
        before = [(job, job.state) for job in again]
        for job in again:
            job.state = "waiting"
        for job in again:
            errors |= set() if job.met else self.check_after(job.id, job.after)
        if errors:
            for job, state in before:
                job.state = state
            return [], errors
        for job in again:
            self._change(job, changes)
            job.state = "held" if hold else "waiting"
            job.not_before, job.failures, job.losses = None, 0, 0
            job.stopping = False
        return [job.id for job in again], errors

    def prune(self, jobs: list[int]) -> list[int]:
        """Forget ended jobs that no other depends on."""
        waiting = [one for one in self.in_state("held", "waiting") if not one.met]
        needed = {other for one in waiting for other, _ in one.after}
        gone = [job for job in jobs if self.state(job) in ENDED and job not in needed]
        for job in gone:
            del self.jobs[job]
        return gone

    def set_paused(self, queue: str | None, paused: bool) -> None:
        if queue is None:
            self.paused = paused
            return
        self.queues[queue].paused, self.queues[queue].fails = paused, 0
        for job in self.in_state(*UNSTARTED, "running"):
            if job.array is not None and job.queue == queue:
                self.array_fails.pop(job.array, None)

    def returned(self, number: int) -> None:
        """Take back a start of which nothing was run."""
        job = self.jobs[number]
        job.suspended = False
        if job.stopping:
            self.end(job, "cancelled")
        else:
            job.state, job.attempts = "queued", job.attempts - 1

    def exited(self, number: int, cause: str, now: int) -> None:
        """End an attempt: `0`, `1`, `2`, `signal`, `time-limit`, `lost`."""
        job = self.jobs[number]
        job.suspended = False
        if cause == "lost":
            if not job.stopping and job.losses < job.retry_lost:
                job.losses, job.state = job.losses + 1, "queued"
            else:
                self.end(job, "lost")
        elif job.stopping:
            self.end(job, "cancelled")
        elif cause == "0":
            self.end(job, "succeeded")
        elif job.failures < job.retries and self._listed(job, cause):
            pause_s = job.backoff_s * 2**job.failures
            job.failures, job.state = job.failures + 1, "waiting"
            job.not_before = now + int(pause_s * 1e6) if pause_s else None
        else:
            self.end(job, "failed")

    def _listed(self, job: ModelJob, cause: str) -> bool:
        return not job.retry_on or cause in job.retry_on

    def end(self, job: ModelJob, state: str) -> None:
        """End a job, and count it where failures are counted."""
        job.state = state
        queue = self.queues[job.queue]
        if state == "succeeded":
            queue.fails = 0
        elif state == "failed":
            queue.fails += 1
            if queue.max_fails is not None and queue.fails >= queue.max_fails:
                queue.paused = True
            self._count_in_array(job, queue)
        members = [one for one in self.jobs.values() if one.array == job.array]
        if all(one.state in ENDED for one in members) and job.array is not None:
            self.array_fails.pop(job.array, None)

    def _count_in_array(self, job: ModelJob, queue: ModelQueue) -> None:
        if job.array is None or job.max_fails is None:
            return
        fails = self.array_fails.get(job.array, 0) + 1
        self.array_fails[job.array] = fails
        if fails >= job.max_fails:
            queue.paused = True
