"""Blobs in the database, in pieces: acknowledged work does not die with a disk.

Pieces are committed while a blob is being written, under the number of its draft. The
row that gives the blob its name is committed last, so whatever has a name is whole.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from grass.errors import LeadLost, StorageError, UsageError
from grass.store.postgres.address import DatabaseAddress
from grass.store.postgres.connections import PostgresConnection, ThreadConnections
from grass.store.postgres.failures import FAILURES, is_away, storage_error
from grass.store.sql.dialect import Dialect

T = TypeVar("T")

ROW_BYTES = 128 * 1024
"""How much of a blob is one row. A connection keeps room for its largest rows."""


class PostgresBlobs:
    """The blobs of one database."""

    def __init__(self, address: DatabaseAddress, sql: Dialect) -> None:
        self._address, self._sql = address, sql
        self._connections = ThreadConnections(address)

    def begin(self, name: str) -> "DatabaseDraft":
        """Begin to write a blob."""
        begin = self._sql["begin_draft"]
        (number,) = self.run(lambda db: db.execute(begin).fetchone())
        return DatabaseDraft(self, self._sql, name, number)

    def size(self, name: str) -> int | None:
        """Return the size of a blob; None: it is not there."""
        asked = self._sql["blob_size"]
        found = self.run(lambda db: db.execute(asked, (name,)).fetchone())
        return None if found is None else int(found[0])

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return those that are not there; a power cut leaves all others."""
        asked, wanted = self._sql["missing_blobs"], json.dumps(list(names))
        found = self.run(lambda db: db.execute(asked, (wanted,)).fetchall())
        return [row[0] for row in found]

    def read(self, name: str, offset: int, length: int) -> bytes | None:
        """Read a piece of a blob; None: it is not there."""
        asked = self._sql["read_pieces"]
        if self.size(name) is None:
            return None
        found = self.run(lambda db: db.read_binary(asked, (name, offset, length)))
        return found[0][0] if len(found) == 1 else b"".join(row[0] for row in found)

    def read_at_once(self, name: str, offset: int, length: int) -> bytes | None:
        """Return None: the database is always to be waited for."""
        return None

    def remove(self, names: Iterable[str], epoch: int = 0) -> None:
        """Remove blobs that nobody named in an epoch, if that is still the last."""
        wanted = json.dumps(list(names))

        def remove(db: PostgresConnection) -> None:
            with db.session.transaction():
                current, holder, _ = db.execute(self._sql["begin_writing"]).fetchone()
                if current != epoch:
                    raise LeadLost(
                        f"epoch {epoch} has ended, {holder or 'nobody'} leads; no blob"
                        " was removed"
                    )
                db.execute(self._sql["remove_blobs"], (wanted,))

        self.run(remove)

    def names(self) -> Iterator[str]:
        """Name all blobs; drafts that nobody finished are removed."""
        self.run(lambda db: db.execute(self._sql["discard_old_drafts"]))
        asked = self._sql["blob_names"]
        found = self.run(lambda db: db.execute(asked).fetchall())
        return (row[0] for row in found)

    def run(self, work: Callable[[PostgresConnection], T]) -> T:
        """Do something with the connection of this thread, twice if it was lost."""
        for is_last in (False, True):
            db = self._connections.of_thread()
            try:
                return work(db)
            except FAILURES as error:
                if is_away(error):
                    self._connections.release()
                    if not is_last:
                        continue
                raise storage_error(error, self._address) from error
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()


class DatabaseDraft:
    """A blob that is being written under a number."""

    def __init__(
        self, blobs: PostgresBlobs, sql: Dialect, name: str, number: int
    ) -> None:
        self._blobs, self._sql, self._name = blobs, sql, name
        self._number: int | None = number
        self._hash = hashlib.sha256()
        self._size = 0

    def write(self, piece: bytes | bytearray) -> None:
        """Append a piece."""
        whole, add = memoryview(piece), self._sql["add_piece"]

        def write(db: PostgresConnection) -> None:
            with db.session.transaction():
                for begin in range(0, len(whole), ROW_BYTES):
                    row = whole[begin : begin + ROW_BYTES]
                    db.execute(add, (self._number, self._size + begin, row))

        self._blobs.run(write)
        self._hash.update(piece)
        self._size += len(piece)

    def sync(self) -> None:
        """Do nothing: what is written is committed."""

    def finish(self) -> bool:
        """Keep the blob durably, and return whether it is new."""
        found = self._hash.hexdigest()
        if found != self._name:
            self.discard()
            raise UsageError(f"the bytes of blob {self._name} have the SHA-256 {found}")
        number, self._number = self._number, None
        values = (number, self._name, self._size)

        def keep(db: PostgresConnection) -> bool:
            with db.session.transaction():
                is_new = db.execute(self._sql["name_blob"], values).rowcount == 1
                if not is_new:
                    db.execute(self._sql["discard_pieces"], (number,))
            return is_new

        is_new = self._blobs.run(keep)
        if not is_new and self._blobs.size(self._name) is None:
            raise StorageError(f"blob {self._name} took longer than a day to write")
        return is_new

    def discard(self) -> None:
        """Remove what was written; after `finish` nothing happens."""
        if self._number is not None:
            number, self._number = self._number, None
            discard = self._sql["discard_draft"]
            self._blobs.run(lambda db: db.execute(discard, (number,)))
