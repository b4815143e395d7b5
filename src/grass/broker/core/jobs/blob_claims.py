"""Who counts on a blob that no job names yet, so that it is not removed.

One that was uploaded, or asked for, is kept for an hour, in which an enqueue may name
it. Its bytes count against those that its owner may have here, from the first one that
arrives until a job names it or its hour is over: nobody fills the disk with what no job
needs. While an enqueue is under way its blobs are held.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from grass.errors import Refused

MOST_NOTED = 10_000
UNNAMED_S = 3600.0
"""How long a blob is kept that no job names."""


class BlobClaims:
    """Until when each is kept, and how many bytes of them each owner has."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        """By name, in the order of these times."""
        self._charged: dict[str, tuple[str, int]] = {}
        """By name: who has uploaded it, and its size."""
        self._bytes: Counter[str] = Counter()
        """By owner, with those that are under way."""
        self._held: Counter[str] = Counter()
        self._there: set[str] = set()
        """Blobs that are there for certain: one that may be removed is none of them."""

    @property
    def is_any(self) -> bool:
        """Whether a blob is kept for an hour."""
        return bool(self._until)

    def hold(self, names: Iterable[str]) -> None:
        """Keep blobs while a call is under way that names them."""
        self._held.update(names)

    def release(self, names: Iterable[str]) -> None:
        """Take note that such a call is over."""
        self._held.subtract(names)
        self._held += Counter()

    def unsure(self, names: Iterable[str]) -> list[str]:
        """Return those of these blobs that it has to be looked for."""
        return [name for name in names if name not in self._there]

    def found(self, names: Iterable[str]) -> None:
        """Note that blobs are there, which a call holds."""
        if len(self._there) > MOST_NOTED:
            self._there.clear()
        self._there.update(names)

    def unclaimed(self, names: Iterable[str]) -> list[str]:
        """Return those of these blobs that are kept for no hour."""
        return [name for name in names if name not in self._until]

    def removable(self, unnamed: Iterable[str]) -> list[str]:
        """Return those of these blobs, which no job names, that no call names."""
        left = [name for name in unnamed if not self._held[name]]
        self._there.difference_update(left)
        return left

    def keep(self, names: Iterable[str], now: float) -> None:
        """Keep blobs for an hour from now on."""
        for name in names:
            self._until.pop(name, None)
            self._until[name] = now + UNNAMED_S

    def over(self, now: float) -> list[str]:
        """Return blobs whose hour is over, and count on them no more."""
        found = []
        for name, until in self._until.items():
            if until > now:
                break
            found.append(name)
        self.drop(found)
        return found

    def drop(self, names: Iterable[str]) -> None:
        """Count blobs no more: jobs name them, or their hour is over."""
        for name in names:
            self._until.pop(name, None)
            owner, size = self._charged.pop(name, ("", 0))
            self._less(owner, size)

    def room(self, owner: str, most: int) -> int:
        """Return how many bytes an owner may upload now."""
        return max(0, most - self._bytes[owner])

    @contextmanager
    def upload(self, name: str, owner: str, most: int) -> "Iterator[Upload]":
        """Count the bytes of an upload, and those of the blob once it is there."""
        upload = Upload(owner, most, self._bytes)
        try:
            yield upload
            if upload.is_new and name not in self._charged:
                self._charged[name] = owner, upload.size
                upload.size = 0
        finally:
            self._less(owner, upload.size)

    def _less(self, owner: str, size: int) -> None:
        self._bytes[owner] -= size
        if not self._bytes[owner]:
            del self._bytes[owner]


class Upload:
    """One blob that is on its way."""

    def __init__(self, owner: str, most: int, counts: Counter[str]) -> None:
        self.size = 0
        self.is_new = False
        """Whether it was not there before, as its end tells."""
        self._owner, self._most, self._counts = owner, most, counts

    def add(self, size: int) -> None:
        """Count bytes that have come, or refuse them."""
        if self._counts[self._owner] + size > self._most:
            raise too_many(self._owner, self._most)
        self._counts[self._owner] += size
        self.size += size


def too_many(owner: str, most: int) -> Refused:
    """Return the error for bytes beyond those that an owner may have here."""
    return Refused(
        f"{owner} would have more than {most:,} bytes here that no job names yet",
        "enqueue what needs them first, or wait an hour; the broker's setting"
        " tasks.unnamed says how many",
    )
