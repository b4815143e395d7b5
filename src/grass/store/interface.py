"""What every store can do.

A store keeps current state and the journal. Only `commit` writes them, and when it
returns, a power cut loses nothing of it. Queries for users (`jobs`, `select`) see what
was committed and never wait for the broker. All calls block; the broker makes them in
its threads, `commit` always in the same one.

Where several brokers share a store, one leads: it has taken the lease, and writes with
the epoch that it was given. A commit of an older epoch changes nothing, and none of an
older epoch is still under way when `take_lease` returns a new one. So whoever loads the
state after it has taken the lease sees all that anybody before it could write.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol

import msgspec

from grass.errors import StorageError
from grass.model.access import Token
from grass.model.brokers import BrokerPresence, Lease, SeenBroker
from grass.model.id_runs import Runs
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import Spec
from grass.model.pools import Pilot, Pool
from grass.model.queue import Queue
from grass.model.resources import Allocation
from grass.model.selectors import Selection
from grass.model.usage.held_sums import HeldSums
from grass.model.usage.profiles import Profile
from grass.model.worker import Worker
from grass.store.blobs import Blobs
from grass.store.changes import AnsweredCall, Changes, Env, StoredEvent


class Snapshot(msgspec.Struct):
    """All that a broker needs to go on after a restart."""

    cluster: str
    last_job: int
    last_spec: int
    last_env: int
    paused: bool
    queues: list[Queue]
    workers: list[Worker]
    jobs: list[Job]
    """Unfinished ones, in order of id."""
    attempts: list[Attempt]
    """Those that may still run: the last one of each running job."""
    specs: dict[int, Spec]
    envs: list[Env]
    calls: list[AnsweredCall]
    counts: dict[str, int]
    output_bytes: int
    arrays: dict[int, int] = {}
    """Failed members, by the first job of the array."""
    dependency_ends: dict[int, JobState] = {}
    """How those jobs ended that unfinished ones depend on; missing ones are pruned."""
    tokens: list[Token] = []
    profiles: list[Profile] = []
    """In the order of job types and models."""
    pools: list[Pool] = []
    pilots: list[Pilot] = []
    last_removal: int = 0
    restored_last_job: int = 0
    """The last job of the backup that it came from, until all workers have reported."""
    home_worker: str = ""
    """In a store that was moved: whose machine environments without origin are of."""
    removals: list[tuple[int, str, int]] = []
    """Number, worker and bytes of output that is to be removed."""


class Order(StrEnum):
    """How a page is sorted."""

    NEWEST = "newest"
    OLDEST = "oldest"
    NEXT = "next"
    """In the order of starting: the highest priority first, then by id."""
    FINISHED = "finished"
    """Those that ended, the last one first."""


class SortKey(StrEnum):
    """What a sorted page is sorted by; jobs without a value come last."""

    ID = "id"
    NAME = "name"
    """Members of an array by the name that they share, and then by id."""
    STARTED = "started"
    ENDED = "ended"
    DURATION = "duration"
    """From the start to the end, of those that ended."""
    PRIORITY = "priority"


def _duration(job: Job) -> int | None:
    if job.finished_at is None or job.started_at is None:
        return None
    return job.finished_at - job.started_at


_VALUES: dict[SortKey, Callable[[Job], int | str | None]] = {
    SortKey.ID: lambda job: job.id,
    SortKey.NAME: lambda job: job.common.name,
    SortKey.STARTED: lambda job: job.started_at,
    SortKey.ENDED: lambda job: job.finished_at,
    SortKey.DURATION: _duration,
    SortKey.PRIORITY: lambda job: job.priority,
}

Place = tuple[int | str | None, int]
"""Where a page ended: the value that it is sorted by, and the id."""


class Sorting(msgspec.Struct, frozen=True):
    """An order, and where in it a page begins."""

    key: SortKey
    descending: bool = False
    place: Place | None = None
    """The page holds what follows on this; None: it is the first."""

    def place_of(self, job: Job) -> Place:
        """Return where a job stands in this order."""
        return _VALUES[self.key](job), job.id


class JobFilter(msgspec.Struct, frozen=True):
    """Which jobs a page holds; empty means all."""

    states: tuple[JobState, ...] = ()
    queue: str | None = None
    project: str | None = None
    name: str | None = None
    owner: str | None = None
    selection: Selection = Selection()
    before: int | None = None
    """Only ids below this one: where the page before ended."""
    after: int | None = None
    order: Order = Order.NEWEST
    array: int | None = None
    """Only members of this array; 0: only jobs of no array."""


class JobDetails(msgspec.Struct):
    """A job with its spec and all its attempts."""

    job: Job
    spec: Spec
    attempts: list[Attempt]


class SortedPage(msgspec.Struct):
    """A page of jobs in the order of a sorting."""

    jobs: list[JobDetails]
    next: Place | None
    """Where the next page begins; None: this is the last one."""
    totals: dict[JobState, int]
    """All jobs that match, by state."""


class ArrayTotals(msgspec.Struct):
    """An array as a whole: its ids, and how many members are in which state."""

    first: int
    last: int
    states: dict[JobState, int] = {}
    started_at: int | None = None
    """When its first member started."""
    finished_at: int | None = None
    """When its last member ended so far."""


class AttemptSpan(msgspec.Struct):
    """What an attempt held, for whom, and from when to when."""

    job: int
    number: int
    owner: str
    state: JobState
    """How it ended: of the last attempt, as its job."""
    worker: str
    allocation: Allocation
    started_at: int
    finished_at: int
    job_finished_at: int


class Store(Protocol):
    """A database that keeps a cluster's state."""

    @property
    def blobs(self) -> Blobs:
        """The bytes that specs and jobs name."""

    def consistent(self) -> AbstractContextManager[None]:
        """Have all reads of this thread in a block see one and the same commit."""

    def commit(self, changes: Changes, epoch: int = 0) -> None:
        """Write all of it durably, or nothing and raise `StorageError`.

        Raises `LeadLost` when the epoch is not the current one, which is 0 as long as
        nobody has taken the lease. Both happen in one transaction, and the lead cannot
        change between check and commit.
        """

    def take_lease(
        self,
        holder: str,
        address: str,
        term_s: float,
        epoch: int = 0,
        process: str = "",
    ) -> Lease:
        """Take or renew the lead for a term, if nobody else has it; return who has it.

        `epoch` is the one that the holder leads with; 0: it does not lead. With the
        current one the term begins anew. Otherwise the lead is taken, with the next
        epoch, if the term has ended or the lead is the holder's own: a broker that was
        restarted, or does not know what came of a commit, need not wait for itself. A
        term of 0 gives the lead up. An end that is further away than a term, as the
        clock went back, is put at one term from now. Clock and comparison are the
        database's, in one statement. Taking waits for commits of the epoch before;
        renewing waits for none, as a long one must not cost the lead. Called from any
        thread. Raises `BrokerInUse` where another process than `process` has been
        announced as this broker lately.
        """

    def lease(self) -> Lease:
        """Tell who leads."""

    def announce(self, broker: BrokerPresence) -> None:
        """Note that a broker is there, whether it leads or not; from any thread.

        Raises `BrokerInUse` while another process is announced as this broker, unless
        `BrokerPresence.may_follow`. Check and note are one statement.
        """

    def brokers(self) -> list[SeenBroker]:
        """Give all brokers that were announced in the last week, by id."""

    def shrink(self) -> bool:
        """Release some unused space, quickly; return whether there is more.

        Called from the thread of `commit`. The next commit raises its error.
        """

    def load(self, calls_since: int) -> Snapshot:
        """Read back what `commit` has written."""

    def shortage(self) -> StorageError | None:
        """Return an error while the disk is too full to add anything, else None.

        What frees space, and what has already happened, may still be committed.
        """

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobDetails]:
        """Read one page of jobs."""

    def sorted_jobs(
        self, wanted: JobFilter, sorting: Sorting, limit: int
    ) -> SortedPage:
        """Read one page of jobs in any order; the filter's own order does not count."""

    def counts(self, wanted: JobFilter) -> dict[JobState, int]:
        """Count the jobs that a filter matches by their state."""

    def queue_counts(self) -> dict[str, dict[JobState, int]]:
        """Count all jobs by queue and state."""

    def arrays(self, wanted: JobFilter, limit: int) -> list[int]:
        """Give arrays with a matching member, in the order of those members.

        The order is `NEXT`, of jobs that wait, or `FINISHED`.
        """

    def array_totals(
        self, arrays: list[int], wanted: JobFilter
    ) -> dict[int, ArrayTotals]:
        """Count the members of these arrays that match, by array.

        Of a filter only state, queue, project and owner count.
        """

    def details(self, ids: list[int]) -> list[JobDetails]:
        """Read these jobs, those that exist, in order of id."""

    def outcomes(self, ids: list[int]) -> list[Job]:
        """Read these jobs, those that exist, without spec and attempts."""

    def states(self, runs: Runs) -> dict[int, JobState]:
        """Read the states of the jobs in these ranges, those that exist."""

    def select(self, selection: Selection) -> list[int]:
        """Return the ids of all jobs of a selection, in order."""

    def dependents(self, ids: list[int]) -> list[int]:
        """Give the cancelled jobs that had waited for these, and theirs in turn.

        Only those that were cancelled because a dependency could not be met.
        """

    def usage_before(self, at: int) -> tuple[int, int]:
        """Count jobs that ended before a time, and the bytes of their output."""

    def ends_after(self, event: int, last: int) -> dict[str, int]:
        """Count the jobs up to an id that ended after an event, by how they did."""

    def finished_before(self, at: int, limit: int, skip: int = 0) -> list[int]:
        """Give jobs that ended before a time, the oldest first but for some."""

    def owned_by(self, owner: str, ids: list[int]) -> list[int]:
        """Give the ids of these jobs that have this owner, in order of id."""

    def call(self, key: str) -> AnsweredCall | None:
        """Read the answer to an idempotency key, if there is one."""

    def attempts_since(
        self, at: int, limit: int, after: AttemptSpan | None = None
    ) -> list[AttemptSpan]:
        """Read attempts of jobs that ended after a time, the last of them first.

        `after` is the last one of the page before.
        """

    def held_since(self, at: int) -> HeldSums:
        """Read what forgotten attempts held that ended after a time, as sums."""

    def environments(self, origins: Mapping[int, str]) -> list[Env]:
        """Read these stored environments, each of which came from a machine."""

    def events(
        self, after: int, limit: int, job: int | None, kinds: tuple[str, ...]
    ) -> list[StoredEvent]:
        """Read the journal from a line on, the oldest first.

        To the events of a job belongs that of the call that added it with others.
        """

    def cluster(self) -> str:
        """Give the name of the cluster, which was made with the database."""

    def tokens(self) -> list[Token]:
        """Give all tokens and codes, the oldest first."""

    def last_event(self) -> int:
        """Give the number of the journal's last line."""

    def runtimes(self, name: str, limit: int) -> list[float]:
        """Give the seconds that the last successful jobs of a name ran."""

    def removal_paths(self, number: int) -> list[str]:
        """Give the files of a removal; none if it is not known."""

    def unnamed_blobs(self, names: list[str]) -> list[str]:
        """Give those of these blobs that neither a spec nor a job names."""

    def release(self) -> None:
        """Close what this thread has open to read: it leaves."""

    def close(self) -> None:
        """Close the database; may be called twice."""
