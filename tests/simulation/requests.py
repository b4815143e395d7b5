"""One request of one client, sent until it is answered.

A client that gets no answer sends again, with the same key where there is one; an
impatient one sends again while the first call is still under way. What is acknowledged
must be in the store at that moment.
"""

from collections.abc import Callable

from grass.api.routes.job_calls import blobs_of
from grass.broker.core.attempts.foreign_calls import EndForeign
from grass.broker.core.calls import (
    AnyCall,
    Cancel,
    ContinueJobs,
    Done,
    Edit,
    Enqueue,
    Enqueued,
    ForgetWorker,
    GiveBackGuest,
    HoldJobs,
    ReleaseJobs,
    Rerun,
    SetPaused,
    SetWorkerDrained,
    SuspendJobs,
)
from grass.errors import (
    Busy,
    GrassError,
    MissingBlob,
    NeverFits,
    NotFound,
    Refused,
    Stopping,
    StorageError,
    UsageError,
)
from tests.simulation.cluster import Cluster
from tests.simulation.task_blobs import blob_data
from tests.simulation.world import MILLISECOND, SECOND, Violation

HONEST = (Busy, NeverFits, NotFound, Refused, StorageError, UsageError)
"""Errors that a client may get; any other is a defect."""
LONGEST_PATIENCE_S = 5.0
ABOUT_NO_JOB = (SetPaused, SetWorkerDrained, ForgetWorker, EndForeign)
KINDS = {
    Cancel: "cancelled",
    HoldJobs: "held",
    ReleaseJobs: "released",
    SuspendJobs: "suspended",
    ContinueJobs: "continued",
    Edit: "edited",
    Rerun: "rerun",
    ForgetWorker: "worker-forgotten",
    EndForeign: "foreign-stopped",
}


class Request:
    """One request of one client, until it is answered."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        make: Callable[[str], AnyCall],
        patience: float,
    ) -> None:
        """`make` builds the call for every try."""
        self.alive = True
        self.answered = False
        self._cluster = cluster
        self._world = cluster.world
        self.name = name
        self._make = make
        self._patience = patience
        self.call: AnyCall | None = None

    def ask(self) -> None:
        """Send the call, and send it again if no answer comes."""
        broker = self._cluster.asked_broker()
        if broker is None:
            self._later(int(20 * MILLISECOND * 100 ** self._world.rng.random()))
            return
        self.call = self._make(self.name)
        self._world.note(f"asks {type(self.call).__name__} {self.name}")
        broker.call(self.call, self)
        self._later(int(self._patience * SECOND))
        self._patience = min(LONGEST_PATIENCE_S, 1.5 * self._patience)

    def _later(self, delay_us: int) -> None:
        self._world.elsewhere.after(delay_us, f"asks again {self.name}", self.ask, self)

    def answer(self, outcome: object) -> None:
        """Take an answer; after an error of the disk it is sent again."""
        self._world.note(f"answers {self.name} {_short(outcome)}")
        if isinstance(outcome, StorageError | Stopping):
            return
        if isinstance(outcome, MissingBlob):
            self._upload()
            return
        self._check(outcome)
        self.answered = True
        self.alive = False

    def _upload(self) -> None:
        """Upload what the call names, one after the other, and send it again then."""
        assert isinstance(self.call, Enqueue)
        self._upload_rest(blobs_of(self.call))

    def _upload_rest(self, names: list[str]) -> None:
        broker = self._cluster.broker
        if not names:
            self.ask()
        elif broker is not None and self.alive:
            rest = lambda: self._upload_rest(names[1:])  # noqa: E731
            broker.blobs.upload(names[0], blob_data(names[0]), rest)

    def _check(self, outcome: object) -> None:
        if isinstance(outcome, GrassError):
            if not isinstance(outcome, HONEST):
                raise Violation(f"{self.name} was told {outcome!r}")
        elif isinstance(outcome, Enqueued):
            self._check_enqueued(outcome)
        elif isinstance(outcome, Done) and not isinstance(self.call, GiveBackGuest):
            self._check_done(outcome)
        elif isinstance(outcome, list):
            for details in outcome:
                if details.job.id in self._cluster.disk.jobs:
                    raise Violation(f"job {details.job.id} was pruned and is there")

    def _check_enqueued(self, reply: Enqueued) -> None:
        assert isinstance(self.call, Enqueue)
        expected = len(self.call.jobs)
        jobs = [
            self._cluster.disk.jobs.get(number)
            for number in range(reply.first, reply.last + 1)
        ]
        names = {
            self._cluster.auditor.forgotten.get(number) if job is None else job.name
            for number, job in enumerate(jobs, reply.first)
        }
        if len(jobs) != expected or names != {self.name}:
            raise Violation(f"{self.name} was acknowledged and is not in the store")
        if any(jobs) and set(blobs_of(self.call)) - self._cluster.disk.blobs.keys():
            raise Violation(f"{self.name} was acknowledged without its blobs")

    def _check_done(self, reply: Done) -> None:
        kind = _kind(self.call)
        auditor = self._cluster.auditor
        if isinstance(self.call, ABOUT_NO_JOB):
            reply.jobs = []
            if (self.name, kind, None) not in auditor.noted:
                raise Violation(f"{self.name} was acknowledged and is not in the store")
        for job in reply.jobs:
            if (self.name, kind, job) not in auditor.noted:
                raise Violation(
                    f"{kind} {job} was acknowledged and is not in the store"
                )
        if isinstance(self.call, Cancel):
            auditor.cancelled.update(self._still_cancelled(reply.jobs))

    def _still_cancelled(self, jobs: list[int]) -> list[int]:
        """Leave out jobs that were run again in the meantime."""
        disk = self._cluster.disk
        return [
            number
            for number in jobs
            if (job := disk.jobs.get(number)) is not None
            and (job.stopping_since is not None or job.state == "cancelled")
        ]


def _kind(call: AnyCall | None) -> str:
    if isinstance(call, SetPaused):
        return "paused" if call.paused else "resumed"
    if isinstance(call, SetWorkerDrained):
        return "drained" if call.drained else "undrained"
    return KINDS[type(call)]  # type: ignore[index]


def _short(outcome: object) -> str:
    if isinstance(outcome, GrassError):
        return type(outcome).__name__
    if isinstance(outcome, Enqueued):
        return f"{outcome.first}-{outcome.last}"
    if isinstance(outcome, list):
        return f"{[details.job.id for details in outcome]}"
    return f"{getattr(outcome, 'jobs', '')}"
