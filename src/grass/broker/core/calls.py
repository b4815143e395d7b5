"""What can be asked of the broker, and what it replies.

Each call is a value with its actor, typed by its reply; the API makes them from
requests, tests and the simulation make them directly. Reading them never needs the
broker's state.

Some calls are about jobs that may have ended, which memory does not know any more. Such
a call names them in `wanted`, and the broker's shell reads them from the store into
`found` between two commits, so that what the call finds there is still true when it is
applied.
"""

from typing import Any, Generic, TypeVar

import msgspec

from grass.link.messages import ToBroker
from grass.model.access import Token
from grass.model.id_runs import Runs
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.params import Params
from grass.model.jobs.spec import JobPatch
from grass.model.jobs.task_call import Arguments
from grass.model.queue import QueuePatch
from grass.model.resources import Capacity
from grass.model.usage.profiles import Profile
from grass.store.changes import Env
from grass.store.interface import JobDetails

R_co = TypeVar("R_co", covariant=True)


class Done(msgspec.Struct):
    """The reply to most calls: the jobs that were changed, and warnings."""

    jobs: list[int] = []
    warnings: list[str] = []
    changed: bool = True
    dependents: int = 0
    """How many other jobs went along, because they waited for these."""


class Enqueued(msgspec.Struct):
    """The reply to `Enqueue`: the ids, which are consecutive."""

    first: int
    last: int
    hint: str = ""


class PlannedJob(msgspec.Struct):
    """A job as it would be enqueued, its command filled as far as it can be."""

    name: str
    project: str
    queue: str
    command: list[str]
    shell: bool
    request: dict[str, Any]
    priority: int
    cwd: str | None
    index: int | None
    params: Params


class Planned(msgspec.Struct):
    """The reply to `PlanEnqueue`: how many jobs, and the first of them."""

    count: int
    jobs: list[PlannedJob]
    hint: str = ""


class Call(msgspec.Struct, Generic[R_co]):
    """A request to the broker, typed by its reply, which comes once it is durable."""


AnyCall = Call[Any]


class Found(msgspec.Struct):
    """Jobs as the store has them, with the environments they need."""

    jobs: dict[int, JobDetails] = {}
    envs: dict[int, Env] = {}
    states: dict[int, JobState] = {}
    """Of jobs that others are to wait for, which may be many."""


class Reading(Call[R_co], Generic[R_co], kw_only=True):
    """A call about jobs that may have ended."""

    wanted: list[int] = []
    """The jobs to read."""
    named: Runs = ()
    """The jobs that others are to wait for, as ranges: their states are read."""
    found: Found | None = None

    @property
    def unread(self) -> bool:
        """Tell whether the jobs were not read yet."""
        return bool(self.wanted or self.named) and self.found is None


class NewJob(msgspec.Struct, frozen=True):
    """One job of an enqueue; jobs that are given the same share the patch."""

    words: tuple[str, ...]
    patch: JobPatch
    shell: bool | None = None
    """None: one word with spaces is a shell line."""
    name: str | None = None
    """Goes before the name that the patch gives."""
    index: int | None = None
    """Its index, as a member of an array. All members are in one call."""
    params: Params | None = None
    """What it is given of its own, by name."""
    arguments: Arguments | None = None
    """Those of a task; None: it is called without any."""


class Enqueue(Reading[Enqueued]):
    """Add jobs: all of them, or none."""

    actor: str
    jobs: list[NewJob]
    key: str | None = None
    base_env: dict[str, str] | None = None
    """The caller's environment; None: none travelled."""
    directory: str | None = None
    """The caller's directory; a patch and a queue with a prefix go before it."""


class PlanEnqueue(Reading[Planned]):
    """Say what an enqueue would add; nothing is changed."""

    enqueue: Enqueue


class CreateQueue(Call[Done]):
    """Add this daemon's view of a queue, making the queue where it is new."""

    actor: str
    name: str
    worker: str
    patch: QueuePatch


class EditQueue(Call[Done]):
    """Change a queue, and this daemon's view of it."""

    actor: str
    name: str
    worker: str
    patch: QueuePatch


class DeleteQueue(Call[Done]):
    """Remove this daemon's view, and the queue with its last view."""

    actor: str
    name: str
    worker: str


class Cancel(Call[Done]):
    """End these jobs; those that ended already are left alone."""

    actor: str
    jobs: list[int]
    grace_s: float | None = None
    signal: int = 15


class HoldJobs(Call[Done]):
    """Keep these jobs from starting until they are released."""

    actor: str
    jobs: list[int]


class ReleaseJobs(Call[Done]):
    """Release held jobs."""

    actor: str
    jobs: list[int]


class SuspendJobs(Call[Done]):
    """Stop the processes of running jobs where they are; their units stay held."""

    actor: str
    jobs: list[int]


class ContinueJobs(Call[Done]):
    """Continue suspended jobs."""

    actor: str
    jobs: list[int]


class SignalJobs(Call[Done]):
    """Send one signal to every process of running jobs."""

    actor: str
    jobs: list[int]
    signal: int


class MeasureGuest(Call[Done]):
    """Learn from what a guest uses now: it will need no more."""

    actor: str
    job: int


class NoteInnerType(Call[Done]):
    """Let what is known of a function hold for the type of the job that it runs in."""

    actor: str
    job: int
    job_type: str


class GiveBackGuest(Call[Done]):
    """End the attempt of a guest; its process goes on."""

    actor: str
    job: int
    exit_code: int | None = 0
    """None: the process is gone, so only its wait is ended."""


class Edit(Reading[Done]):
    """Change jobs that have not started."""

    actor: str
    jobs: list[int]
    patch: JobPatch
    first: bool = False
    """Whether they get a priority above all others that wait in their queues."""
    before: int | None = None
    """The job right before which they are to start; nothing else is changed then."""


class Rerun(Reading[Done]):
    """Give ended jobs a new attempt, changed where the patch gives something."""

    actor: str
    jobs: list[int]
    patch: JobPatch = JobPatch()
    hold: bool = False


class AddUnits(Call[Done]):
    """Give a worker more units than were found."""

    actor: str
    worker: str
    capacity: Capacity


class RemoveUnit(Call[Done]):
    """Take a unit away that was added, as soon as no job holds it."""

    actor: str
    worker: str
    kind: str
    unit: str


class SetUnitDrained(Call[Done]):
    """Start nothing new on a unit, or again; running jobs finish."""

    actor: str
    worker: str
    kind: str
    unit: str
    drained: bool


class SetWorkerDrained(Call[Done]):
    """Start nothing new on a worker, or again; running jobs finish."""

    actor: str
    worker: str
    """By name or id."""
    drained: bool


class ForgetWorker(Call[Done]):
    """Take a worker out that will not come back; what it ran is lost."""

    actor: str
    name: str
    """Or its id."""


class SetPaused(Call[Done]):
    """Stop or resume starting jobs, of one queue or of all."""

    actor: str
    paused: bool
    queue: str | None = None


class NewToken(Call[Token]):
    """Make a token, or a code that machines get theirs with."""

    actor: str
    role: str
    hash: bytes
    """Of the secret, which only its holder knows."""
    name: str | None = None
    is_code: bool = False
    expires_at: int | None = None
    used_names: frozenset[str] = frozenset()
    """Names of deleted tokens that still own jobs."""
    worker: str | None = None
    """The only worker that may use it: that of the broker's own machine."""


class RevokeToken(Call[Done]):
    """Revoke a token or a code."""

    actor: str
    name: str


class Enrol(Call[Token]):
    """Exchange a code for a token of the machine's own."""

    code: str
    """The code's name; that its secret is known was seen before."""
    name: str
    worker: str | None
    hash: bytes
    shown: bytes | None = None
    """The hash of the secret that the machine has already, if it showed one."""
    used_names: frozenset[str] = frozenset()
    """Names of deleted tokens that still own jobs."""
    instance: str = ""
    """Which of the homes with the worker's id this is: a home may be copied."""
    shown_name: str = ""
    """The name that was shown with that secret."""


class BindToken(Call[Done]):
    """Tie a token to the worker that uses it first."""

    name: str
    worker: str


class TouchToken(Call[None]):
    """Note that a token is in use."""

    name: str
    hash: bytes = b""
    """Of the secret that was shown; the first use of a new one ends the old one."""


class ForgetProfiles(Call[Done]):
    """Forget what was learned of job types."""

    actor: str
    types: list[str]


class ImportProfiles(Call[Done]):
    """Take over profiles, in place of those of the same types and models."""

    actor: str
    profiles: list[Profile]


class Prune(Reading[list[JobDetails]]):
    """Forget these ended jobs; their output is the worker's to remove."""

    actor: str
    jobs: list[int]


class FromWorker(Reading[None]):
    """A worker's message; of a hello the jobs are read that memory may not know."""

    worker: str
    message: ToBroker
    address: str | None = None
    """Its address; None: it is part of this daemon."""
    instance: str = ""
    """The instance of the worker that sent it."""


class WorkerGone(Call[None]):
    """A worker's link ended."""

    worker: str


class TimerFired(Call[None]):
    """Time has passed that a decision waited for."""
