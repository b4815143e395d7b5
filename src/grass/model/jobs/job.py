"""Jobs and attempts as the broker keeps them.

A `Job` has a number, a state and what happened to it. What jobs of one call have in
common is one `Common` object, because a million members of an array may wait; how they
run is in their `Spec`. A job with parameters is a `JobWithParams` and one that calls a
function a `TaskJob`, so that the many others do not grow. States change only through
`lifecycle`.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.params import Params
from grass.model.jobs.placeholders import fill, of_the_job
from grass.model.jobs.task_call import Arguments
from grass.model.resources import Allocation
from grass.model.usage.attempt_usage import ResourceUse

DEFAULT_PROJECT = "default"
DEFAULT_QUEUE = "default"


class Common(msgspec.Struct, frozen=True, gc=False):
    """What jobs of one call have in common, until one is changed."""

    spec: int
    words: tuple[str, ...]
    """What was asked to run; one shell line where `shell` is set."""
    shell: bool
    name: str
    """With the placeholders that each job fills in its own way."""
    project: str
    owner: str
    queue: str
    priority: int
    created_at: int
    array: int | None = None
    """The first job of the array it belongs to."""


class Return(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A worker that returned a job's start, as something is missing there."""

    worker: str
    reason: str
    missing: str
    """The directory, program or script, as the job names it."""


class Job(msgspec.Struct, gc=False):
    """One job, with one id for life."""

    id: int
    common: Common
    state: JobState
    index: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    attempts: int = 0
    stopping_since: int | None = None
    """When a cancel was accepted; from then on no attempt starts."""
    not_before: int | None = None
    """When the pause before a retry is over."""
    failures: int = 0
    """Failed attempts that were retried."""
    losses: int = 0
    """Lost attempts that were followed by another."""
    suspended_since: int | None = None
    met: bool = False
    """Whether its dependencies were all met once; then they count no more."""
    returns: tuple[Return, ...] = ()
    """The workers that returned it before anything ran, until it runs elsewhere."""

    @property
    def spec(self) -> int:
        """The number of its spec."""
        return self.common.spec

    @property
    def words(self) -> tuple[str, ...]:
        """What was asked to run; one shell line where `shell` is set."""
        return self.common.words

    @property
    def shell(self) -> bool:
        """Whether its words are a line for a shell."""
        return self.common.shell

    @property
    def name(self) -> str:
        """What people call it."""
        return filled_name(self.common.name, self.id, self.index, self.params)

    @property
    def params(self) -> Params:
        """What it is given of its own, by name."""
        return {}

    @property
    def arguments(self) -> bytes:
        """The pickled arguments of a task, unless they are a blob."""
        return b""

    @property
    def arguments_blob(self) -> str:
        """The blob with the pickled arguments of a task; empty: there is none."""
        return ""

    @property
    def project(self) -> str:
        """What it belongs to."""
        return self.common.project

    @property
    def owner(self) -> str:
        """Who asked for it."""
        return self.common.owner

    @property
    def queue(self) -> str:
        """Where it waits or runs."""
        return self.common.queue

    @property
    def priority(self) -> int:
        """The higher goes first."""
        return self.common.priority

    @property
    def created_at(self) -> int:
        """When it was asked for."""
        return self.common.created_at

    @property
    def array(self) -> int | None:
        """The first job of the array it belongs to."""
        return self.common.array

    def change(self, **fields: Any) -> None:  # noqa: ANN401 -- as `replace` takes them
        """Change values that the job has in common with others, for this job alone."""
        self.common = msgspec.structs.replace(self.common, **fields)


class JobWithParams(Job, gc=False):
    """A job that is given something of its own."""

    params: Params = {}


class TaskJob(Job, gc=False):
    """A job that calls a function with arguments of its own."""

    arguments: bytes = b""
    arguments_blob: str = ""


def new_job(
    id: int,
    common: Common,
    state: JobState,
    index: int | None,
    params: Params | None,
    arguments: Arguments | None = None,
) -> Job:
    """Make a job to which nothing has happened yet."""
    if arguments is not None:
        data, blob = arguments
        return TaskJob(id, common, state, index, arguments=data, arguments_blob=blob)
    if params:
        return JobWithParams(id, common, state, index, params=params)
    return Job(id, common, state, index)


def filled_name(name: str, id: int, index: int | None, params: Params) -> str:
    """Return a job's own name: `fit-3` of `fit-{index}`."""
    if "{" not in name:
        return name
    # Values may hold bytes that are not UTF-8; a name is text.
    filled = fill(name, of_the_job(id, index, params))
    return filled.encode("utf-8", "replace").decode()


def alike(jobs: Iterable[Job]) -> Iterator[tuple[Common, int]]:
    """Yield what consecutive jobs have in common, and how many jobs they are."""
    for common, some in groupby(jobs, attrgetter("common")):
        yield common, sum(1 for _ in some)


class Attempt(msgspec.Struct, gc=False):
    """One try to run a job on one worker."""

    job: int
    number: int
    worker: str
    boot: str
    state: AttemptState
    allocation: Allocation
    started_at: int
    finished_at: int | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    output: str | None = None
    output_offset: int = 0
    output_bytes: int = 0
    stderr: str | None = None
    stderr_offset: int = 0
    max_rss: int | None = None
    cpu_s: float | None = None
    after: int | None = None
    """The job whose units it takes over when that one ends; None: it has them."""
    ran_s: float | None = None
    """For how long it ran, measured by a clock that cannot jump."""
    given_back: int | None = None
    """The exit code with which a guest gave it back, which its worker may not know."""
    peak: ResourceUse | None = None
    """The most that it used; None: it was not measured."""
    usage: str | None = None
    """The file with the history of what it used, unless that is beside its output."""
    cause: str = ""
    """Why it failed, as a word of `endings`; empty: for none of these causes."""
    result: bytes = b""
    """What a task returned or raised, where that is small; otherwise it is a file."""
