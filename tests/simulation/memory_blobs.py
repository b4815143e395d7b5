"""Blobs in memory, for stores that are no database."""

import hashlib
from collections.abc import Callable, Iterable, Iterator

from grass.errors import UsageError


class MemoryBlobs:
    """The blobs of a disk, by name."""

    def __init__(
        self, kept: dict[str, bytes], check: Callable[[int], None] = lambda _epoch: None
    ) -> None:
        """`check` raises if an epoch has ended."""
        self._kept, self._check = kept, check

    def begin(self, name: str) -> "MemoryDraft":
        """Begin to write a blob."""
        return MemoryDraft(self._kept, name)

    def size(self, name: str) -> int | None:
        """Return the size of a blob; None: it is not there."""
        return len(self._kept[name]) if name in self._kept else None

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return those that are not there; a power cut leaves all others."""
        return [name for name in names if name not in self._kept]

    def read(self, name: str, offset: int, length: int) -> bytes | None:
        """Read a piece of a blob; None: it is not there."""
        known = self._kept.get(name)
        return None if known is None else known[offset : offset + length]

    def read_at_once(self, name: str, offset: int, length: int) -> bytes | None:
        """Read a piece, as memory takes no time."""
        return self.read(name, offset, length)

    def remove(self, names: Iterable[str], epoch: int = 0) -> None:
        """Remove blobs; those that are not there are passed over."""
        self._check(epoch)
        for name in names:
            self._kept.pop(name, None)

    def names(self) -> Iterator[str]:
        """Name all blobs."""
        return iter(list(self._kept))


class MemoryDraft:
    """A blob that is being written."""

    def __init__(self, kept: dict[str, bytes], name: str) -> None:
        self._kept, self._name = kept, name
        self._data = bytearray()

    def write(self, piece: bytes | bytearray) -> None:
        """Append a piece."""
        self._data += piece

    def sync(self) -> None:
        """Do nothing."""

    def finish(self) -> bool:
        """Keep it, and return whether it is new."""
        if hashlib.sha256(self._data).hexdigest() != self._name:
            raise UsageError(f"the bytes of blob {self._name} have another SHA-256")
        is_new = self._name not in self._kept
        self._kept[self._name] = bytes(self._data)
        return is_new

    def discard(self) -> None:
        """Remove what was written; after `finish` nothing happens."""
        self._data.clear()
