"""The store in PostgreSQL.

One connection writes, from the broker's writer thread. A commit locks the rows of the
lead and of the journal, so it writes only as long as this broker leads, and lines of
the journal have the order of commits. Each thread that reads has its own connection.

When a connection is lost while a commit is under way, it is not known whether that was
done; it fails, and the broker loads what there is. `load` waits for it first.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import psycopg

from grass.errors import (
    DiskFull,
    GrassError,
    LeadLost,
    NoDatabase,
    Refused,
    StorageError,
)
from grass.model.brokers import BrokerPresence, Lease, SeenBroker
from grass.model.selectors import Selection
from grass.store.blobs import Blobs
from grass.store.changes import Changes
from grass.store.interface import Snapshot
from grass.store.postgres.address import DatabaseAddress
from grass.store.postgres.blobs import PostgresBlobs
from grass.store.postgres.connections import (
    COPY_AT_LEAST,
    PostgresConnection,
    ThreadConnections,
    connect,
)
from grass.store.postgres.dialect import PostgresDialect
from grass.store.postgres.failures import FAILURES, is_away, storage_error
from grass.store.postgres.leading import Leading
from grass.store.postgres.migrating import migrate, unlocked, usable_version
from grass.store.postgres.sealing import BrokersKey
from grass.store.sql import loading
from grass.store.sql.dialect import Connection
from grass.store.sql.job_counts import Arriving
from grass.store.sql.sql_reads import ALL, PATTERN_S, SqlReads, took_too_long
from grass.store.sql.writing import write

T = TypeVar("T")

IDLE_S = 3.0
"""A commit that stops in the middle for this long is ended by the server."""
LOCKED_S = 20.0
"""How long a commit waits for another one."""
ALONE = 0x67726174
"""The number of the lock of who has a database alone."""
SHORT_S = 5.0
"""For how long after the server's disk was full, nothing is added."""


class PostgresStore(SqlReads):
    """One cluster's state in one database."""

    def __init__(self, address: DatabaseAddress, key: BrokersKey) -> None:
        """Open a database; environments in it are sealed with the brokers' key."""
        self.address = address
        self._writer = connect(address, idle_s=IDLE_S, lock_s=LOCKED_S)
        try:
            migrate(self._writer, address)
            self._sql: PostgresDialect = PostgresDialect(
                unlocked(self._writer, address, key)
            )
        except GrassError:
            self._writer.close()
            raise
        self._readers = ThreadConnections(address)
        self._leading = Leading(address, self._sql)
        self._blobs = PostgresBlobs(address, self._sql)
        self.blobs: Blobs = self._blobs
        self._arriving = Arriving()
        self._local = threading.local()
        self._writing = threading.Lock()
        """`load` runs in another thread than `commit`."""
        self._alone: PostgresConnection | None = None
        self._full: tuple[float, DiskFull] | None = None

    def use(self) -> None:
        """Use the database beside other brokers; refuse to while somebody has it alone.

        It keeps `lock_out_others` away, not another leader.
        """
        self._alone = self._alone or connect(self.address)
        asked = f"SELECT pg_try_advisory_lock_shared({ALONE})"
        if not self._alone.execute(asked).fetchone()[0]:
            raise Refused(
                f"the database {self.address.shown} is being copied or checked",
                "wait until that is done, then start again",
            )

    def lock_out_others(self) -> bool:
        """Have the database alone as long as it is open; False: another one has it."""
        self._alone = self._alone or connect(self.address)
        asked = f"SELECT pg_try_advisory_lock({ALONE})"
        return bool(self._alone.execute(asked).fetchone()[0])

    def commit(self, changes: Changes, epoch: int = 0) -> None:
        """Write all of it durably, or nothing and raise `StorageError`."""
        with self._writing:
            try:
                self._write(self._open_writer(), changes, epoch)
            except (*FAILURES, LeadLost) as error:
                failure = self._failed(error)
                raise failure from failure.__cause__
            self._full = None

    def _write(self, db: PostgresConnection, changes: Changes, epoch: int) -> None:
        most = max(len(changes.jobs), len(changes.attempts), len(changes.events))
        # What is copied cannot be sent along with the rest.
        is_small = most < COPY_AT_LEAST
        with db.session.pipeline() if is_small else nullcontext():
            db.execute("BEGIN")
            last = self._begin(db, epoch)
            write(db, self._sql, changes, self._arriving, last)
            if changes.events:
                db.execute(self._sql["advance_journal"], (len(changes.events),))
            db.execute("COMMIT")

    def _begin(self, db: PostgresConnection, epoch: int | None) -> int:
        """Lock the lead and the journal; return the journal's last line."""
        current, holder, last = db.execute(self._sql["begin_writing"]).fetchone()
        if epoch is not None and current != epoch:
            raise LeadLost(f"epoch {epoch} has ended; {holder or 'nobody'} leads")
        return int(last)

    def _open_writer(self) -> PostgresConnection:
        if not self._writer.is_open:
            self._writer = connect(self.address, idle_s=IDLE_S, lock_s=LOCKED_S)
        return self._writer

    def _failed(self, error: Exception) -> StorageError:
        """Roll back, or drop a connection that was lost; return the error to raise."""
        db = self._writer
        try:
            if is_away(error):
                db.close()
            elif db.is_open and db.in_transaction:
                db.execute("ROLLBACK")
        except psycopg.Error:
            db.close()
        if isinstance(error, StorageError):
            return error
        failure = storage_error(error, self.address)
        failure.__cause__ = error
        if isinstance(failure, DiskFull):
            self._full = time.monotonic() + SHORT_S, failure
        return failure

    def shrink(self) -> bool:
        """Do nothing: the server releases space by itself."""
        return False

    def load(self, calls_since: int) -> Snapshot:
        """Read back what `commit` has written."""
        with self._writing:
            self._arriving = Arriving()
            try:
                db = self._open_writer()
                self._discard_incomplete(db, calls_since)
                return self._snapshot(calls_since)
            except (*FAILURES, NoDatabase) as error:
                failure = self._failed(error)
                raise failure from failure.__cause__

    def _discard_incomplete(self, db: PostgresConnection, calls_since: int) -> None:
        """Wait for a commit whose outcome is not known, and clear up, if we lead."""
        db.execute("BEGIN")
        current, _, _ = db.execute(self._sql["begin_writing"]).fetchone()
        usable_version(db, self.address)
        if current == self._leading.epoch:
            try:
                loading.discard_incomplete(db, self._sql, calls_since)
            except psycopg.errors.DiskFull:
                # The rows stay; the statements that read skip them.
                db.execute("ROLLBACK")
                return
        db.execute("COMMIT")

    def _snapshot(self, calls_since: int) -> Snapshot:
        # Its own connection: it may take longer than a commit may stop.
        with self.reading() as db:
            return loading.snapshot(db, self._sql, calls_since)

    def shortage(self) -> StorageError | None:
        """Return an error for a while after the server's disk was full."""
        if self._full is None or time.monotonic() > self._full[0]:
            return None
        return self._full[1]

    def take_lease(
        self,
        holder: str,
        address: str,
        term_s: float,
        epoch: int = 0,
        process: str = "",
    ) -> Lease:
        """Take or renew the lead for a term, if nobody else has it."""
        return self._leading.take(holder, address, term_s, epoch, process)

    def lease(self) -> Lease:
        """Return who leads."""
        return self._leading.lease()

    def announce(self, broker: BrokerPresence) -> None:
        """Note that a broker is there."""
        self._leading.announce(broker)

    def brokers(self) -> list[SeenBroker]:
        """Return all brokers that were announced in the last week."""
        return self._leading.brokers()

    @property
    def dialect(self) -> PostgresDialect:
        """The words of this database, for those who copy its rows."""
        return self._sql

    @contextmanager
    def consistent(self) -> Iterator[None]:
        """Have all reads of this thread in a block see one and the same commit."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        self._read(lambda db: db.execute(begin))
        self._local.is_consistent = True
        try:
            yield
        finally:
            self._local.is_consistent = False
            self._end_reading()

    def _end_reading(self) -> None:
        db = self._readers.of_thread()
        try:
            db.execute("ROLLBACK")
        except psycopg.Error:
            self._readers.release()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection whose reads are of one commit, for long ones too."""
        db = connect(self.address)
        try:
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            db.fetch_in_parts()
            yield db
        except FAILURES as error:
            raise storage_error(error, self.address) from error
        finally:
            db.close()

    def release(self) -> None:
        """Close the connection of this thread, which reads no more."""
        self._readers.release()

    def close(self) -> None:
        """Close the database; may be called twice."""
        self._writer.close()
        self._readers.close()
        self._leading.close()
        self._blobs.close()
        if self._alone is not None:
            self._alone.close()

    def _read(self, query: Callable[[Connection], T], selection: Selection = ALL) -> T:
        """Run a query; where it looks through names, for a limited time."""
        may_repeat = not getattr(self._local, "is_consistent", False)
        while True:
            try:
                return self._run(query, selection)
            except FAILURES as error:
                if isinstance(error, psycopg.errors.QueryCanceled):
                    raise took_too_long() from None
                if not is_away(error):
                    raise storage_error(error, self.address) from error
                self._readers.release()
                if not may_repeat:
                    raise storage_error(error, self.address) from error
                may_repeat = False

    def _run(self, query: Callable[[Connection], T], selection: Selection) -> T:
        db = self._readers.of_thread()
        if not selection.has_pattern:
            return query(db)
        db.execute(f"SET statement_timeout TO {max(1, int(PATTERN_S * 1e3))}")
        try:
            return query(db)
        finally:
            if not db.session.broken:
                _forget_limit(db)


def _forget_limit(db: PostgresConnection) -> None:
    # In a transaction that has failed the limit is forgotten with it.
    if db.session.info.transaction_status != psycopg.pq.TransactionStatus.INERROR:
        db.execute("SET statement_timeout TO 0")
