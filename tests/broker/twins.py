"""A broker and the model side by side, asked the same things."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis.stateful import RuleBasedStateMachine
from tests.broker.job_model import (
    ENDED,
    UNSTARTED,
    Errors,
    JobModel,
    ModelJob,
    ModelQueue,
)
from tests.support.brokerage import SECOND, Brokerage
from tests.support.building import BOOT, WORKER, units

from grass.broker.core.calls import AnyCall, FromWorker
from grass.link.messages import Exited, Hello, Start

UNITS = 2
MEMORY = Path("/dev/shm")
"""Nothing of this needs to outlast a power cut."""
CAUSES: dict[str, dict[str, Any]] = {
    "0": {"exit_code": 0},
    "1": {"exit_code": 1},
    "2": {"exit_code": 2},
    "signal": {"signal": 9},
    "time-limit": {"exit_code": 7, "reason": "time limit"},
    "not-started": {"reason": "no such program"},
    "lost": {"lost": True},
}


class Twins(RuleBasedStateMachine):
    """A broker beside the model, and a worker that believes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory(dir=MEMORY if MEMORY.exists() else None)
        self.broker = Brokerage(Path(self.folder.name) / "grass.db", f"{{cpu:{UNITS}}}")
        self.broker.create_queue("strict", f"{{cpu:{UNITS}}}", max_fails=2)
        self.model = JobModel(UNITS)
        self.model.queues = {"default": ModelQueue(), "strict": ModelQueue(2)}
        self.boot = BOOT
        self.unreported: list[tuple[int, str, Exited]] = []
        self.decided: set[str] = set()

    def teardown(self) -> None:
        self.broker.store.close()
        self.folder.cleanup()

    def ask(self, call: AnyCall, errors: Errors) -> Any:
        """Make a call that the model says is answered, or refused in one of ways."""
        reply: Any = None
        if errors:
            with pytest.raises(tuple(errors)):
                self.broker.call_at_once(call)
            self.broker.flush()
        else:
            reply = self.broker.call_at_once(call)
        self.follow()
        return reply

    def follow(self) -> None:
        """Let the model see what the broker has seen, and compare who starts."""
        expected = self.model.advance(self.broker.now_us)
        messages = [one for _, one in self.broker.sent if isinstance(one, Start)]
        # A start that the worker may have missed is sent again.
        fresh = [one.job for one in messages if one.attempt not in self.decided]
        assert sorted(fresh) == sorted(expected)
        self.decided = {self.broker.name(job) for job in self.broker.state.attempts}

    def some_jobs(self, luck: Random) -> list[int]:
        """Name jobs, and now and then one that never was."""
        last = self.broker.state.last_job
        ids = [luck.randint(1, last) for _ in range(luck.randint(1, 3))]
        return list(dict.fromkeys(ids + [last + 5] * (luck.random() < 0.1)))

    def some_after(self, luck: Random) -> tuple[tuple[int, str], ...]:
        """Choose what to wait for: mostly what has not ended, rarely what never was."""
        last = self.broker.state.last_job
        ids = [job.id for job in self.model.in_state(*UNSTARTED, "running")] * 4
        ids += range(max(1, last - 6), last + 1)
        if luck.random() < 0.05 or not ids:
            ids = [last + 1]
        count = luck.choice([0, 0, 1, 1, 2, 2]) if last else 0
        needs = ["any", "any", "succeeded", "failed"]
        wanted = [(luck.choice(ids), luck.choice(needs)) for _ in range(count)]
        return tuple(dict.fromkeys(wanted))

    def some_changes(self, luck: Random, jobs: list[int]) -> dict[str, Any]:
        """Change one field; members of an array stay in their queue."""
        later = luck.choice([None, self.broker.now_us + 12 * SECOND])
        changes = {
            "priority": luck.randint(-1, 1),
            "begin_at": later,
            "retries": luck.randint(0, 2),
            "queue": luck.choice(["default", "strict"]),
        }
        known = [self.model.jobs[job] for job in jobs if job in self.model.jobs]
        if any(job.array for job in known):
            del changes["queue"]
        name = luck.choice([*changes])
        return {name: changes[name]}

    def waited_for(self) -> list[int]:
        """Name ended jobs that others wait for, besides something else."""
        waiting = self.model.in_state("held", "waiting")
        named = {other for job in waiting for other, _ in job.after}
        return [job.id for job in self.model.in_state(*ENDED) if job.id in named]

    def paused(self) -> list[str | None]:
        """Name what is paused; None is everything."""
        known = self.model.queues
        paused: list[str | None] = [None] if self.model.paused else []
        return paused + [name for name, queue in known.items() if queue.paused]

    def starting(self) -> list[ModelJob]:
        """Give the jobs that a worker that is here may still return."""
        running = self.model.in_state("running") if self.model.here else []
        return [job for job in running if not job.begun]

    def alive(self) -> list[int]:
        """Give the jobs whose processes have not ended."""
        over = {job for job, _, _ in self.unreported}
        return [one.id for one in self.model.in_state("running") if one.id not in over]

    def end(self, job: int, cause: str) -> None:
        ended = Exited(self.broker.name(job), self.broker.now_us, **CAUSES[cause])
        if self.model.here:
            self.model.exited(job, cause, self.broker.now_us + SECOND)
            self.ask(FromWorker(WORKER, ended), set())
        else:
            self.unreported.append((job, cause, ended))

    def end_in_this_batch(self, luck: Random) -> None:
        """Have a job end just before a call, with no commit in between."""
        if self.model.here and self.alive():
            job, cause = luck.choice(self.alive()), luck.choice(["0", "1", "2"])
            name, at = self.broker.name(job), self.broker.now_us
            self.broker.step(FromWorker(WORKER, Exited(name, at, **CAUSES[cause])))
            self.model.exited(job, cause, self.broker.now_us)

    def connect(self) -> None:
        """Have the worker report all it knows."""
        for job, cause, _ in self.unreported:
            self.model.exited(job, cause, self.broker.now_us + SECOND)
        exited = [ended for _, _, ended in self.unreported]
        self.unreported = []
        over = {ended.attempt for ended in exited}
        reports = [
            self.broker.report(job.id, running=job.begun, stopping=job.stopping)
            for job in self.model.in_state("running")
            if job.id in self.broker.state.attempts
            and self.broker.name(job.id) not in over
        ]
        self.model.here = True
        found = units(f"{{cpu:{UNITS}}}")
        hello = Hello(WORKER, "desk", self.boot, found, reports, exited)
        self.ask(FromWorker(WORKER, hello), set())
