"""The store in SQLite.

Exactly one connection writes, always from the broker's writer thread; it also runs the
checkpoints. WAL with `synchronous=FULL`: when `commit` returns, a power cut loses
nothing. Each thread that reads has a connection of its own that cannot write, so a long
listing delays neither a commit nor what the broker looks up.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from grass.errors import GrassError, StorageError
from grass.model.selectors import Selection
from grass.store.blob_folder import BlobFolder
from grass.store.bodies import CorruptRow
from grass.store.changes import Changes
from grass.store.interface import Snapshot
from grass.store.lone_broker import LoneBroker
from grass.store.sql import loading
from grass.store.sql.dialect import Connection
from grass.store.sql.job_counts import Arriving
from grass.store.sql.sql_reads import ALL, PATTERN_S, SqlReads, took_too_long
from grass.store.sql.writing import write
from grass.store.sqlite import vacuum
from grass.store.sqlite.database_file import (
    damaged,
    disk_full,
    enable_vacuum,
    is_damage,
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
from grass.store.sqlite.database_note import DAMAGED, OPEN, DatabaseNote
from grass.store.sqlite.dialect import SqliteDialect
from grass.store.sqlite.disk_reserve import Reserve
from grass.store.sqlite.write_ahead_log import (
    LOG_BYTES,
    WriteAheadLog,
    checkpoint,
    limit_log_file,
)

T = TypeVar("T")

_FAILURES = (sqlite3.Error, OSError, UnicodeError, OverflowError, CorruptRow)
"""Binding a value that SQLite cannot hold raises the third or the fourth."""


class SqliteStore(SqlReads, LoneBroker):
    """One cluster's state in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blobs = BlobFolder(path.parent / "blobs")
        self._sql = SqliteDialect()
        self._note = DatabaseNote(path)
        self._note.check_log()
        self._reserve = Reserve(path)
        self._writer = open_writer(path)
        self._folder = os.stat(path.parent)
        try:
            self._refuse_damage()
            migrate(self._writer, path)
        except GrassError:
            self._note.remove(OPEN)
            self._writer.close()
            self._reserve.close()
            raise
        enable_vacuum(self._writer, path)
        preallocate_log(self._writer, path)
        self._log = WriteAheadLog(path)
        self._reserve.open(path)
        self._note.write(OPEN)
        self._reserve_due = False
        self._trusted = True
        self._shrinks = False
        self._pending_error: StorageError | None = None
        """An error of `shrink`, or damage that was read, which commits raise."""
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
                    self._note.write(OPEN)
            except _FAILURES as error:
                failure = self._failed(error)
                if is_fatal(failure):
                    self._pending_error = failure
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
            self._note.write(OPEN)
            self._reserve_due = False

    def load(self, calls_since: int) -> Snapshot:
        """Read back what `commit` has written."""
        with self._writing:
            self._arriving = Arriving()
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                loading.discard_incomplete(self._writer, self._sql, calls_since)
                self._writer.execute("COMMIT")
            except sqlite3.Error as error:
                failure = self._failed(error)
                # On a full disk the rows stay; the statements that read skip them.
                if not is_full(error) or is_fatal(failure):
                    raise failure from failure.__cause__
            try:
                return loading.snapshot(self._writer, self._sql, calls_since)
            except _FAILURES as error:
                raise self._unreadable(error) from error

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

    @property
    def is_in_place(self) -> bool:
        """Whether the path leads to the folder still in which the file was opened."""
        try:
            return os.path.samestat(os.stat(self.path.parent), self._folder)
        except OSError:
            return False

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
        # The last connection to be closed copies the log, if it may write, and removes
        # the file of that path. After a failed sync none may, nor once the folder was
        # moved: the writer is closed first.
        may_write = self._trusted and self.is_in_place and self._copy_log()
        connections = *self._readers, self._writer
        for one in connections if may_write else reversed(connections):
            one.close()
        self._log.close()
        self._reserve.close()

    def _copy_log(self) -> bool:
        """Remove the note once nothing is in the log alone; return whether that worked.

        What fails once must not be tried again: a second sync may not report it.
        """
        try:
            if checkpoint(self._writer):
                self._note.remove(OPEN)
        except sqlite3.Error:
            return False
        return True

    def _read(
        self,
        query: Callable[[Connection], T],
        selection: Selection = ALL,
    ) -> T:
        """Run a query; where it looks through names, for a limited time."""
        db = self._reader
        limited = selection.has_pattern
        try:
            if limited:
                limit_time(db, PATTERN_S)
            return query(db)
        except _FAILURES as error:
            if is_interrupted(error):
                raise took_too_long() from None
            raise self._unreadable(error) from error
        finally:
            if limited:
                limit_time(db, None)

    @property
    def _reader(self) -> sqlite3.Connection:
        """The connection of this thread."""
        known: sqlite3.Connection | None = getattr(self._local, "reader", None)
        if known is None:
            if not self.is_in_place:
                raise StorageError(f"{self.path.parent} was moved beneath its daemon")
            try:
                known = self._local.reader = open_reader(self.path)
            except sqlite3.Error as error:
                raise self._unreadable(error) from error
            self._readers.append(known)
        return known

    def _refuse_damage(self) -> None:
        """Raise if the database is damaged, where its last process noticed that."""
        try:
            problem = self._note.damage(self._writer)
        except sqlite3.Error as error:
            raise storage_error(error, self.path) from error
        if problem is not None:
            raise damaged(self.path, problem)

    def _unreadable(self, error: Exception) -> StorageError:
        """Return the error of a read; after one of a damaged file nothing is written.

        What the writer still has in memory would be acknowledged otherwise.
        """
        failure = storage_error(error, self.path)
        failure.__cause__ = error
        self._note_damage(failure)
        return failure

    def _failed(self, error: Exception) -> StorageError:
        failure = rolled_back(self._writer, error, self.path)
        self._trusted = self._trusted and not is_fatal(failure)
        self._note_damage(failure)
        return failure

    def _note_damage(self, failure: StorageError) -> None:
        if is_damage(failure.__cause__):
            self._trusted, self._pending_error = False, failure
            self._note.write(DAMAGED)
