"""Everything that is read of a store in a database that speaks SQL."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

from grass.errors import TimedOut
from grass.model.access import Token
from grass.model.id_runs import Runs
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState
from grass.model.selectors import Selection
from grass.model.usage.held_sums import DAY_US, HeldSums
from grass.store.bodies import from_json, json_text
from grass.store.changes import AnsweredCall, Env, StoredEvent
from grass.store.interface import (
    ArrayTotals,
    AttemptSpan,
    JobDetails,
    JobFilter,
    SortedPage,
    Sorting,
)
from grass.store.sql import (
    attempt_spans,
    count_queries,
    job_queries,
    sorted_pages,
)
from grass.store.sql.dialect import Connection, Dialect, Row
from grass.store.sql.loading import read_envs, read_tokens
from grass.store.sql.rows import held_sum_from

T = TypeVar("T")

ALL = Selection()
PATTERN_S = 10.0
"""How long names may be looked through for a pattern."""


class SqlReads(ABC):
    """The queries of a store; how one is run is for each database."""

    _sql: Dialect

    @abstractmethod
    def _read(self, query: Callable[[Connection], T], selection: Selection = ALL) -> T:
        """Run a query; where it looks through names, for a limited time."""

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobDetails]:
        """Read one page of jobs."""
        return self._read(
            lambda db: job_queries.page(db, self._sql, wanted, limit),
            wanted.selection,
        )

    def sorted_jobs(
        self, wanted: JobFilter, sorting: Sorting, limit: int
    ) -> SortedPage:
        """Read one page of jobs in any order."""
        return self._read(
            lambda db: sorted_pages.page(db, self._sql, wanted, sorting, limit),
            wanted.selection,
        )

    def counts(self, wanted: JobFilter) -> dict[JobState, int]:
        """Count the jobs that a filter matches by their state."""
        return self._read(
            lambda db: count_queries.counts(db, self._sql, wanted), wanted.selection
        )

    def queue_counts(self) -> dict[str, dict[JobState, int]]:
        """Count all jobs by queue and state."""
        return self._read(lambda db: count_queries.queue_counts(db, self._sql))

    def arrays(self, wanted: JobFilter, limit: int) -> list[int]:
        """Give arrays with a matching member, in the order of those members."""
        return self._read(lambda db: count_queries.arrays(db, self._sql, wanted, limit))

    def array_totals(
        self, arrays: list[int], wanted: JobFilter
    ) -> dict[int, ArrayTotals]:
        """Count the members of these arrays that match, by array."""
        return self._read(
            lambda db: count_queries.array_totals(db, self._sql, arrays, wanted)
        )

    def details(self, ids: list[int]) -> list[JobDetails]:
        """Read these jobs, those that exist, in order of id."""
        return self._read(lambda db: job_queries.details(db, self._sql, ids))

    def outcomes(self, ids: list[int]) -> list[Job]:
        """Read these jobs, those that exist, without spec and attempts."""
        return self._read(lambda db: job_queries.jobs_by_id(db, self._sql, ids))

    def states(self, runs: Runs) -> dict[int, JobState]:
        """Read the states of the jobs in these ranges, those that exist."""
        return self._read(lambda db: job_queries.states(db, self._sql, runs))

    def select(self, selection: Selection) -> list[int]:
        """Return the ids of all jobs of a selection, in order."""
        return self._read(
            lambda db: job_queries.select(db, self._sql, selection), selection
        )

    def dependents(self, ids: list[int]) -> list[int]:
        """Give the cancelled jobs that had waited for these, and theirs in turn."""
        return self._read(lambda db: job_queries.dependents(db, self._sql, ids))

    def usage_before(self, at: int) -> tuple[int, int]:
        """Count jobs that ended before a time, and the bytes of their output."""
        statement = self._sql["usage_before"]
        return self._read(lambda db: _pair(db.execute(statement, (at,)).fetchone()))

    def ends_after(self, event: int, last: int) -> dict[str, int]:
        """Count the jobs up to an id that ended after an event, by how they did."""
        statement = self._sql["ends_after"]
        return self._read(lambda db: dict(db.execute(statement, (event, last))))

    def finished_before(self, at: int, limit: int, skip: int = 0) -> list[int]:
        """Give jobs that ended before a time, the oldest first but for some."""
        statement = self._sql["finished_before"]
        return self._read(
            lambda db: [row[0] for row in db.execute(statement, (at, limit, skip))]
        )

    def owned_by(self, owner: str, ids: list[int]) -> list[int]:
        """Give the ids of these jobs that have this owner, in order of id."""
        statement, wanted = self._sql["owned_by"], (json_text(ids), owner)
        return self._read(lambda db: [row[0] for row in db.execute(statement, wanted)])

    def call(self, key: str) -> AnsweredCall | None:
        """Read the answer to an idempotency key, if there is one."""
        statement = self._sql["find_call"]
        row = self._read(lambda db: db.execute(statement, (key,)).fetchone())
        return None if row is None else AnsweredCall(*row)

    def attempts_since(
        self, at: int, limit: int, after: AttemptSpan | None = None
    ) -> list[AttemptSpan]:
        """Read attempts of jobs that ended after a time, the last of them first."""
        statement = self._sql["attempts_since"]
        return self._read(
            lambda db: attempt_spans.page(db, statement, at, limit, after)
        )

    def held_since(self, at: int) -> HeldSums:
        """Read what forgotten attempts held that ended after a time, as sums."""
        statement, places = self._sql["held_since"], (at - DAY_US, at)
        return self._read(
            lambda db: dict(map(held_sum_from, db.execute(statement, places)))
        )

    def environments(self, origins: Mapping[int, str]) -> list[Env]:
        """Read these stored environments, each of which came from a machine."""
        return self._read(lambda db: read_envs(db, self._sql, origins))

    def events(
        self, after: int, limit: int, job: int | None, kinds: tuple[str, ...]
    ) -> list[StoredEvent]:
        """Read the journal from a line on, the oldest first."""
        wanted = (after, job, kinds)
        return self._read(lambda db: job_queries.events(db, self._sql, wanted, limit))

    def cluster(self) -> str:
        """Return the name of the cluster, which was made with the database."""
        return self._read(
            lambda db: str(dict(db.execute(self._sql["load_meta"]))["cluster"])
        )

    def tokens(self) -> list[Token]:
        """Return all tokens and codes, the oldest first."""
        return self._read(lambda db: read_tokens(db, self._sql))

    def last_event(self) -> int:
        """Give the number of the journal's last line."""
        statement = self._sql["last_event"]
        return self._read(lambda db: int(db.execute(statement).fetchone()[0]))

    def runtimes(self, name: str, limit: int) -> list[float]:
        """Give the seconds that the last successful jobs of a name ran."""
        statement = self._sql["runtimes"]
        return self._read(
            lambda db: [row[0] for row in db.execute(statement, (name, limit))]
        )

    def removal_paths(self, number: int) -> list[str]:
        """Give the files of a removal; none if it is not known."""
        statement = self._sql["read_removal"]
        row = self._read(lambda db: db.execute(statement, (number,)).fetchone())
        return [] if row is None else from_json(row[0], list[str], "of paths")

    def unnamed_blobs(self, names: list[str]) -> list[str]:
        """Give those of these blobs that neither a spec nor a job names."""
        statement, wanted = self._sql["unnamed_blobs"], (json_text(names),)
        return self._read(lambda db: [row[0] for row in db.execute(statement, wanted)])


def took_too_long() -> TimedOut:
    """Return the error for a pattern that takes too long."""
    return TimedOut(
        f"to look through all names takes longer than {PATTERN_S:g} s",
        "name a project, a queue or a state as well, or a range of ids",
    )


def _pair(row: Row) -> tuple[int, int]:
    return int(row[0]), int(row[1])
