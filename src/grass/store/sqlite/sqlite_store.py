"""The store in SQLite.

Exactly one connection writes, always from the broker's writer thread; it also runs the
checkpoints. WAL with `synchronous=FULL`: when `commit` returns, a power cut loses
nothing. Each thread that reads has a connection of its own that cannot write, so a long
listing delays neither a commit nor what the broker looks up.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from grass.errors import GrassError, StorageError, TimedOut
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState
from grass.model.selectors import Selection
from grass.store.blob_folder import BlobFolder
from grass.store.bodies import CorruptRow, from_json, json_text
from grass.store.changes import AnsweredCall, Changes, Env, StoredEvent
from grass.store.interface import (
    ArrayTotals,
    AttemptSpan,
    JobDetails,
    JobFilter,
    Snapshot,
    SortedPage,
    Sorting,
)
from grass.store.lone_broker import LoneBroker
from grass.store.sqlite import (
    attempt_spans,
    count_queries,
    job_filters,
    job_queries,
    loading,
    rows,
    sorted_pages,
    vacuum,
)
from grass.store.sqlite.database_file import (
    disk_full,
    enable_vacuum,
    is_fatal,
    is_full,
    is_interrupted,
    limit_time,
    migrate,
    open_reader,
    open_writer,
    preallocate_log,
    rolled_back,
    storage_error,
)
from grass.store.sqlite.disk_reserve import Reserve
from grass.store.sqlite.job_counts import Arriving
from grass.store.sqlite.statements import statements
from grass.store.sqlite.write_ahead_log import (
    LOG_BYTES,
    WriteAheadLog,
    checkpoint,
    limit_log_file,
)
from grass.store.sqlite.writing import write

T = TypeVar("T")

PATTERN_S = 10.0
"""How long names may be looked through for a pattern."""
_FAILURES = (sqlite3.Error, OSError, UnicodeError, OverflowError, CorruptRow)
"""Binding a value that SQLite cannot hold raises the third or the fourth."""


class SqliteStore(LoneBroker):
    """One cluster's state in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blobs = BlobFolder(path.parent / "blobs")
        self._sql = statements("sqlite")
        self._reserve = Reserve(path)
        self._writer = open_writer(path)
        try:
            migrate(self._writer, path)
        except GrassError:
            self._writer.close()
            self._reserve.close()
            raise
        enable_vacuum(self._writer, path)
        preallocate_log(self._writer, path)
        self._log = WriteAheadLog(path)
        self._reserve.open(path)
        self._reserve_due = False
        self._trusted = True
        self._shrinks = False
        self._pending_error: StorageError | None = None
        """An error of `shrink` that the next commit raises."""
        self._arriving = Arriving()
        self._local = threading.local()
        self._readers = list[sqlite3.Connection]()
        _ = self._reader
        self._writing = threading.Lock()
        """`load` runs in another thread than `commit`."""

    def commit(self, changes: Changes, epoch: int = 0) -> None:
        """Write all of it durably, or nothing and raise `StorageError`."""
        if self._pending_error is not None:
            raise self._pending_error
        with self._writing:
            try:
                self._checkpoint_if_due()
                self._writer.execute("BEGIN IMMEDIATE")
                write(self._writer, self._sql, changes, self._arriving)
                self._writer.execute("COMMIT")
            except _FAILURES as error:
                failure = self._failed(error)
                raise failure from failure.__cause__
            self._refill_reserve()

    def shrink(self) -> bool:
        """Release some unused pages; return whether there are more."""
        with self._writing:
            try:
                self._checkpoint_if_due()
                more = vacuum.release_pages(self._writer)
                if not more and self._shrinks:
                    # The checkpoint makes the file itself shorter.
                    checkpoint(self._writer)
                    self._reserve.fill()
            except _FAILURES as error:
                failure = self._failed(error)
                self._pending_error = failure if is_fatal(failure) else None
                more = False
        self._shrinks = more
        return more

    def _checkpoint_if_due(self) -> None:
        """Copy a long log into the database.

        It happens before a commit and not after it: a commit that raises an error was
        then not done.
        """
        if self._log.is_long:
            checkpoint(self._writer)
            # Truncating the file releases the blocks reserved behind its end.
            has_room = self._reserve.has_room()
            limit_log_file(self._writer, LOG_BYTES if has_room else None)
            self._reserve_due = True

    def _refill_reserve(self) -> None:
        """Reserve blocks again, after the commit that truncated the log."""
        if self._reserve_due:
            self._reserve.fill()
            self._reserve_due = False

    def load(self, calls_since: int) -> Snapshot:
        """Read back what `commit` has written."""
        with self._writing:
            self._arriving = Arriving()
            try:
                loading.discard_incomplete(self._writer, self._sql, calls_since)
            except sqlite3.Error as error:
                failure = self._failed(error)
                # On a full disk the rows stay; the statements that read skip them.
                if not is_full(error) or is_fatal(failure):
                    raise failure from failure.__cause__
            try:
                return loading.snapshot(self._writer, self._sql, calls_since)
            except _FAILURES as error:
                raise storage_error(error, self.path) from error

    def shortage(self) -> StorageError | None:
        """Return an error while the disk is too full to add anything."""
        return None if self._reserve.has_room() else disk_full(self.path)

    @contextmanager
    def consistent(self) -> Iterator[None]:
        """Have all reads of this thread in a block see one and the same commit."""
        self._read(lambda db: db.execute("BEGIN"))
        try:
            yield
        finally:
            self._read(lambda db: db.execute("ROLLBACK"))

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobDetails]:
        """Read one page of jobs."""
        return self._read(
            lambda db: job_queries.page(db, self._sql, wanted, limit),
            wanted.selections,
        )

    def sorted_jobs(
        self, wanted: JobFilter, sorting: Sorting, limit: int
    ) -> SortedPage:
        """Read one page of jobs in any order."""
        return self._read(
            lambda db: sorted_pages.page(db, self._sql, wanted, sorting, limit),
            wanted.selections,
        )

    def counts(self, wanted: JobFilter) -> dict[JobState, int]:
        """Count the jobs that a filter matches by their state."""
        return self._read(
            lambda db: count_queries.counts(db, self._sql, wanted), wanted.selections
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

    def select(self, selections: list[Selection]) -> list[int]:
        """Give the ids of all jobs that any of the selections means."""
        return self._read(
            lambda db: job_queries.select(db, self._sql, selections), selections
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

    def environments(self, ids: list[int]) -> list[Env]:
        """Read these stored environments."""
        statement = self._sql["read_envs"]
        wanted = json_text(ids)
        return self._read(
            lambda db: [Env(*row) for row in db.execute(statement, (wanted,))]
        )

    def events(
        self, after: int, limit: int, job: int | None, kinds: tuple[str, ...]
    ) -> list[StoredEvent]:
        """Read the journal from a line on, the oldest first."""
        wanted = (after, job, kinds)
        return self._read(lambda db: job_queries.events(db, self._sql, wanted, limit))

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

    def restore_file(self) -> None:
        """Write the file again that was deleted; only `close` may follow."""
        draft = self.path.with_suffix(".new")
        try:
            draft.unlink(missing_ok=True)
            with closing(sqlite3.connect(draft)) as copy:
                self._writer.backup(copy)
            # The log that is there belongs to the deleted file.
            for end in ("-wal", "-shm"):
                Path(f"{self.path}{end}").unlink(missing_ok=True)
            draft.rename(self.path)
        except _FAILURES as error:
            raise storage_error(error, self.path) from error

    def release(self) -> None:
        """Close the connection of this thread, which reads no more."""
        known: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if known is not None:
            del self._local.reader
            self._readers.remove(known)
            known.close()

    def close(self) -> None:
        """Close the database; may be called twice."""
        # The last connection to be closed copies the log, if it may write. After a
        # failed sync none may: the writer is closed first.
        connections = *self._readers, self._writer
        for one in connections if self._trusted else reversed(connections):
            one.close()
        self._log.close()
        self._reserve.close()

    def _read(
        self,
        query: Callable[[sqlite3.Connection], T],
        selections: Sequence[Selection] = (),
    ) -> T:
        """Run a query; where it looks through names, for a limited time."""
        db = self._reader
        limited = job_filters.has_pattern(selections)
        try:
            if limited:
                limit_time(db, PATTERN_S)
            return query(db)
        except _FAILURES as error:
            if is_interrupted(error):
                raise _took_too_long() from None
            raise storage_error(error, self.path) from error
        finally:
            if limited:
                limit_time(db, None)

    @property
    def _reader(self) -> sqlite3.Connection:
        """The connection of this thread."""
        known: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if known is None:
            known = self._local.reader = open_reader(self.path)
            self._readers.append(known)
        return known

    def _failed(self, error: Exception) -> StorageError:
        failure = rolled_back(self._writer, error, self.path)
        self._trusted = self._trusted and not is_fatal(failure)
        return failure


def _took_too_long() -> TimedOut:
    return TimedOut(
        f"to look through all names takes longer than {PATTERN_S:g} s",
        "name a project, a queue or a state as well, or a range of ids",
    )


def _pair(row: rows.Row) -> tuple[int, int]:
    return int(row[0]), int(row[1])
