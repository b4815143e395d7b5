"""The store in SQLite.

Exactly one connection writes, always from the broker's writer thread; it also runs the
checkpoints. WAL with `synchronous=FULL`: when `commit` returns, a power cut loses
nothing. Each thread that reads has a connection of its own that cannot write, so a long
listing delays neither a commit nor what the broker looks up.
"""

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from grass.errors import StorageError
from grass.model.access import Token
from grass.model.job import Job, alike
from grass.model.lifecycle import ENDED, JobState
from grass.model.queue import Queue
from grass.model.selectors import Selection
from grass.model.spec import Spec
from grass.store.bodies import CorruptBody, from_json, json_text
from grass.store.changes import AnsweredCall, Changes, Env, StoredEvent
from grass.store.interface import JobDetails, JobFilter, Snapshot
from grass.store.sqlite import job_queries, loading, rows, vacuum
from grass.store.sqlite.database_file import (
    disk_full,
    grow_log,
    is_fatal,
    is_full,
    let_shrink,
    migrate,
    opened,
    opened_for_reading,
    storage_error,
    undone,
)
from grass.store.sqlite.disk_reserve import Reserve
from grass.store.sqlite.statements import statements
from grass.store.sqlite.write_ahead_log import LOG_BYTES, Log, copy_log, limit_log

T = TypeVar("T")

_FAILURES = (sqlite3.Error, OSError, UnicodeError, OverflowError, CorruptBody)
"""Binding a value that SQLite cannot hold raises the third or the fourth."""


class SqliteStore:
    """One cluster's state in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sql = statements("sqlite")
        self._reserve = Reserve(path)
        self._writer = opened(path)
        migrate(self._writer, path)
        let_shrink(self._writer, path)
        grow_log(self._writer, path)
        self._log = Log(path)
        self._reserve.open(path)
        self._reserve_due = False
        self._trusted = True
        self._shrinks = False
        self._doom: StorageError | None = None
        """Why the next commit fails, where nobody was told before."""
        self._own = threading.local()
        self._readers = list[sqlite3.Connection]()
        _ = self._reader
        self._writing = threading.Lock()
        """The state is read anew in another thread than it is written in."""

    def commit(self, changes: Changes) -> None:
        """Write all of it durably, or nothing and raise `StorageError`."""
        if self._doom is not None:
            raise self._doom
        with self._writing:
            try:
                self._copy_long_log()
                self._writer.execute("BEGIN IMMEDIATE")
                self._write(changes)
                self._writer.execute("COMMIT")
            except _FAILURES as error:
                told = self._failed(error)
                raise told from told.__cause__
            self._refill_reserve()

    def shrink(self) -> bool:
        """Give some unused room back, in a moment; tell whether more is to give."""
        with self._writing:
            try:
                self._copy_long_log()
                more = vacuum.give_back(self._writer)
                if not more and self._shrinks:
                    # Only then is the file itself shorter.
                    copy_log(self._writer)
                    self._reserve.fill()
            except _FAILURES as error:
                told = self._failed(error)
                self._doom = told if is_fatal(told) else None
                more = False
        self._shrinks = more
        return more

    def _copy_long_log(self) -> None:
        """Copy the log once it is long.

        Before and not after a commit: an error then says the truth about that commit.
        """
        if self._log.is_long:
            copy_log(self._writer)
            # To cut the file gives up the room behind its end: not on a full disk.
            has_room = self._reserve.has_room()
            limit_log(self._writer, LOG_BYTES if has_room else None)
            self._reserve_due = True

    def _refill_reserve(self) -> None:
        """Keep room for the files again, after the commit that cut the log."""
        if self._reserve_due:
            self._reserve.fill()
            self._reserve_due = False

    def load(self, calls_since: int) -> Snapshot:
        """Read back what `commit` has written."""
        with self._writing:
            try:
                self._tidy(calls_since)
            except sqlite3.Error as error:
                told = self._failed(error)
                # On a full disk what should be gone is passed over when it is read.
                if not is_full(error) or is_fatal(told):
                    raise told from told.__cause__
            try:
                return self._loaded(calls_since)
            except _FAILURES as error:
                raise storage_error(error, self.path) from error

    def shortage(self) -> StorageError | None:
        """Tell that nothing may be added for want of room; None: it may."""
        return None if self._reserve.has_room() else disk_full(self.path)

    def jobs(self, wanted: JobFilter, limit: int) -> list[JobDetails]:
        """Read one page of jobs."""
        return self._read(lambda db: job_queries.page(db, self._sql, wanted, limit))

    def details(self, ids: list[int]) -> list[JobDetails]:
        """Read these jobs, those that exist, in order of id."""
        return self._read(lambda db: job_queries.details(db, self._sql, ids))

    def outcomes(self, ids: list[int]) -> list[Job]:
        """Read these jobs, those that exist, without spec and attempts."""
        return self._read(lambda db: job_queries.jobs_by_id(db, self._sql, ids))

    def select(self, selections: list[Selection]) -> list[int]:
        """Give the ids of all jobs that any of the selections means."""
        return self._read(lambda db: job_queries.select(db, self._sql, selections))

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
        """Give those of these jobs that are somebody's, in order of id."""
        statement, wanted = self._sql["owned_by"], (json_text(ids), owner)
        return self._read(lambda db: [row[0] for row in db.execute(statement, wanted)])

    def call(self, key: str) -> AnsweredCall | None:
        """Tell what an idempotency key was answered with, if it is known."""
        statement = self._sql["find_call"]
        row = self._read(lambda db: db.execute(statement, (key,)).fetchone())
        return None if row is None else AnsweredCall(*row)

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
        return [] if row is None else from_json(row[0], list[str])

    def write_anew(self) -> None:
        """Put the database back where it was deleted; only `close` may follow."""
        draft = self.path.with_suffix(".new")
        try:
            draft.unlink(missing_ok=True)
            with closing(sqlite3.connect(draft)) as copy:
                self._writer.backup(copy)
            # What is left of the log belongs to a file that has no name any more.
            for end in ("-wal", "-shm"):
                Path(f"{self.path}{end}").unlink(missing_ok=True)
            draft.rename(self.path)
        except _FAILURES as error:
            raise storage_error(error, self.path) from error

    def close(self) -> None:
        """Let go of the database; may be called twice."""
        # Whoever is the last, and may write, copies the log and syncs the database.
        # After a failed sync nobody does: the next to open it believes what it reads.
        ends = *self._readers, self._writer
        for end in ends if self._trusted else reversed(ends):
            end.close()
        self._log.close()
        self._reserve.close()

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return query(self._reader)
        except _FAILURES as error:
            raise storage_error(error, self.path) from error

    @property
    def _reader(self) -> sqlite3.Connection:
        """Give this thread's connection: nobody waits for the reading of another."""
        known: sqlite3.Connection | None = getattr(self._own, "reader", None)
        if known is None:
            known = self._own.reader = opened_for_reading(self.path)
            self._readers.append(known)
        return known

    def _write(self, changes: Changes) -> None:
        for statement, values_of, row in _WRITES:
            values = values_of(changes)
            if values:
                self._many(statement, map(row, values))
        if changes.removed_jobs:
            self._remove_jobs(changes.removed_jobs)
        for name, unused in (
            ("remove_unused_spec", changes.unused_specs),
            ("remove_unused_env", changes.unused_envs),
        ):
            self._many(name, ((number,) for number in unused))

    def _many(self, name: str, parameters: Iterable[rows.Row]) -> None:
        self._writer.executemany(self._sql[name], parameters)

    def _remove_jobs(self, ids: list[int]) -> None:
        for name in ("remove_events_of", "remove_attempts_of", "remove_job"):
            self._many(name, ((job,) for job in ids))
        self._writer.execute(self._sql["remove_old_comings"])

    def _failed(self, error: Exception) -> StorageError:
        told = undone(self._writer, error, self.path)
        self._trusted = self._trusted and not is_fatal(told)
        return told

    def _tidy(self, calls_since: int) -> None:
        """Undo what a broker was in the middle of writing, and drop old answers."""
        self._writer.execute("BEGIN IMMEDIATE")
        self._writer.execute(self._sql["expire_calls"], (calls_since,))
        self._writer.execute(self._sql["drop_arriving_jobs"])
        if self._writer.execute(self._sql["drop_arrivals"]).rowcount:
            self._writer.execute(self._sql["remove_unused_specs"])
            self._writer.execute(self._sql["remove_unused_envs"])
        self._writer.execute("COMMIT")

    def _loaded(self, calls_since: int) -> Snapshot:
        db, sql = self._writer, self._sql
        meta = dict(db.execute(sql["load_meta"]))
        last_spec, last_env = db.execute(sql["largest_ids"]).fetchone()
        found = self._bodies("load_queues", rows.queue_from)
        queues = {queue.name: queue for queue in sorted(found, key=_by_age)}
        for queue, worker, body in db.execute(sql["load_views"]):
            queues[queue].views[worker] = rows.view_from(body)
        jobs = loading.unfinished(db, sql)
        specs = self._specs({common.spec for common, _ in alike(jobs)})
        return Snapshot(
            cluster=meta["cluster"],
            last_job=int(meta["last_job"]),
            last_spec=last_spec,
            last_env=last_env,
            paused=meta["paused"] == "1",
            queues=list(queues.values()),
            workers=self._bodies("load_workers", rows.worker_from),
            jobs=jobs,
            attempts=[
                rows.attempt_from(row) for row in db.execute(sql["load_live_attempts"])
            ],
            specs=specs,
            envs=self._envs({spec.base_env for spec in specs.values()}),
            calls=[
                AnsweredCall(*row)
                for row in db.execute(sql["load_calls"], (calls_since,))
            ],
            counts=dict(db.execute(sql["count_by_state"])),
            output_bytes=db.execute(sql["output_usage"]).fetchone()[0],
            last_removal=int(meta.get("last_removal", "0")),
            removals=db.execute(sql["load_removals"]).fetchall(),
            arrays=dict(db.execute(sql["load_arrays"])),
            tokens=sorted(self._bodies("load_tokens", rows.token_from), key=_by_age),
            settled=self._ends_of({one.job for s in specs.values() for one in s.after}),
        )

    def _bodies(self, name: str, read: Callable[[str], T]) -> list[T]:
        return [read(body) for (body,) in self._writer.execute(self._sql[name])]

    def _specs(self, ids: set[int]) -> dict[int, Spec]:
        found = self._writer.execute(self._sql["read_specs"], (json_text(sorted(ids)),))
        return {number: rows.spec_from(body) for number, body in found}

    def _envs(self, ids: set[int | None]) -> list[Env]:
        wanted = json_text(sorted(number for number in ids if number is not None))
        return [
            Env(*row) for row in self._writer.execute(self._sql["read_envs"], (wanted,))
        ]

    def _ends_of(self, jobs: set[int]) -> dict[int, JobState]:
        """Tell how jobs ended that others wait for; unfinished ones are left out."""
        found = self._writer.execute(self._sql["states_of"], (json_text(sorted(jobs)),))
        states = {job: JobState(state) for job, state in found}
        return {job: state for job, state in states.items() if state in ENDED}


def _by_age(one: Queue | Token) -> tuple[int, str]:
    return one.created_at, one.name


def _pair(row: rows.Row) -> tuple[int, int]:
    return int(row[0]), int(row[1])


def _alone(value: object) -> rows.Row:
    return (value,)


def _as_it_is(row: rows.Row) -> rows.Row:
    return row


_WRITES: list[tuple[str, Callable[[Changes], Collection[Any]], Callable[..., rows.Row]]]
_WRITES = [
    ("save_meta", lambda changes: changes.meta.items(), _as_it_is),
    ("add_env", lambda changes: changes.envs, _as_it_is),
    ("add_spec", lambda changes: changes.specs.items(), rows.spec_row),
    ("save_worker", lambda changes: changes.workers.values(), rows.worker_row),
    # Removals first: a queue may be made anew in the batch that deleted it.
    ("remove_view", lambda changes: changes.removed_views, _as_it_is),
    ("remove_worker", lambda changes: changes.removed_workers, _alone),
    ("remove_queue", lambda changes: changes.removed_queues, _alone),
    ("save_queue", lambda changes: changes.queues.values(), rows.queue_row),
    ("save_view", lambda changes: changes.views.items(), rows.view_row),
    ("save_job", lambda changes: changes.jobs.values(), rows.job_row),
    ("remove_attempt", lambda changes: changes.removed_attempts, _as_it_is),
    ("save_attempt", lambda changes: changes.attempts.values(), rows.attempt_row),
    ("add_arrival", lambda changes: changes.arrivals, _as_it_is),
    ("remove_arrival", lambda changes: changes.removed_arrivals, _alone),
    ("remove_array", lambda changes: changes.removed_arrays, _alone),
    ("save_array", lambda changes: changes.arrays.items(), _as_it_is),
    # Removals first: a machine that joins again gets its name anew.
    ("remove_token", lambda changes: changes.removed_tokens, _alone),
    ("save_token", lambda changes: changes.tokens.values(), rows.token_row),
    ("add_removal", lambda changes: changes.removals, rows.removal_row),
    ("remove_removal", lambda changes: changes.removed_removals, _alone),
    ("add_event", lambda changes: changes.events, _as_it_is),
    ("add_call", lambda changes: changes.calls, _as_it_is),
]
"""Statement, what of the changes it writes, and how a value becomes a row."""
