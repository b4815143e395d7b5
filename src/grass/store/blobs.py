"""Blobs: bytes that are kept under their SHA-256, in pieces, for jobs that name them.

A store keeps blobs beside its tables, which say who names them: specs their functions,
jobs their arguments. So a blob is added before the commit that names it and removed
after the one that no longer does; a power cut in between leaves bytes that nobody
names, and `names` finds those at the next start. All calls block.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

PIECE = 512 * 1024
"""In bytes: what is read or written at a time."""


class BlobDraft(Protocol):
    """A blob that is being written."""

    def write(self, piece: bytes | bytearray) -> None:
        """Append a piece."""

    def sync(self) -> None:
        """Put what was written on the disk, while more is written by another thread."""

    def finish(self) -> bool:
        """Keep it durably, and return whether it is new.

        Raises `UsageError`, and keeps nothing, if its bytes have another SHA-256.
        """

    def discard(self) -> None:
        """Remove what was written; after `finish` nothing happens."""


class Blobs(Protocol):
    """The blobs of a store."""

    def begin(self, name: str) -> BlobDraft:
        """Begin to write a blob."""

    def size(self, name: str) -> int | None:
        """Return the size of a blob; None: it is not there."""

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return those that are not there; a power cut leaves all others.

        A commit may name those. What `size` finds may be gone after a power cut.
        """

    def read(self, name: str, offset: int, length: int) -> bytes | None:
        """Read a piece of a blob; None: it is not there."""

    def read_at_once(self, name: str, offset: int, length: int) -> bytes | None:
        """Read a piece if that takes no time; None: it may, or it is not there."""

    def remove(self, names: Iterable[str], epoch: int = 0) -> None:
        """Remove blobs; those that are not there are passed over.

        `epoch` is the one in which it was found that no job names them: nothing is
        removed in a later one, and `LeadLost` is raised.
        """

    def names(self) -> Iterator[str]:
        """Name all blobs."""
