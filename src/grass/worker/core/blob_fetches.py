"""Which pieces of which blobs a worker asks for, and what follows when they come.

Each blob is asked for once, however many attempts name it, a few pieces at a time. It
is written in order, one write at a time, and kept when all of it was written: the shell
checks its hash then. After a new connection it goes on where it was. What is asked of
the broker and of the disk is handed out by `take`.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from grass.link.requests import BLOB_PIECE, BlobData, ReadBlob

PIECE = BLOB_PIECE
"""How many bytes are asked for at a time."""
WINDOW = 3
"""How many pieces are asked for ahead."""


class WriteBlob(NamedTuple):
    """Append to the draft of a blob, which is made if there is none."""

    name: str
    data: bytes


class KeepBlob(NamedTuple):
    """Check a draft, and give it its name."""

    name: str


class DropBlob(NamedTuple):
    """Remove a draft, if there is one: the blob cannot be had."""

    name: str
    problem: str


@dataclass
class FetchEffects:
    """What the shell is to do, in this order."""

    asks: list[ReadBlob] = field(default_factory=list)
    disk: list[WriteBlob | KeepBlob | DropBlob] = field(default_factory=list)
    """Each of one blob is answered by `done` or `failed`; a drop by nothing."""
    ready: list[tuple[str, str]] = field(default_factory=list)
    """Attempts, each with why it cannot have its blobs; empty: it has them."""


class BlobFetches:
    """The blobs that are being fetched, and the attempts that wait for them."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._fetches: dict[str, _Fetch] = {}
        self._asked: dict[int, _Fetch] = {}
        self._waits: dict[str, set[str]] = {}
        """By attempt: the blobs that it waits for."""
        self._effects = FetchEffects()

    def take(self) -> FetchEffects:
        """Return the effects since the last `take`."""
        effects, self._effects = self._effects, FetchEffects()
        return effects

    def is_waiting(self, attempt: str) -> bool:
        """Tell whether an attempt waits for a blob."""
        return attempt in self._waits

    def need(self, attempt: str, missing: list[str]) -> None:
        """Have an attempt wait for blobs that are not here."""
        self._waits[attempt] = set(missing)
        for name in missing:
            if name not in self._fetches:
                fetch = self._fetches[name] = _Fetch(name)
                self._ask_for_more(fetch)

    def received(self, data: BlobData) -> None:
        """Take a piece; one that was not asked for is dropped."""
        fetch = self._asked.pop(data.number, None)
        if fetch is not None:
            fetch.arrived.append(data)
            if not fetch.is_busy:
                self._use_pieces(fetch)

    def connected(self) -> None:
        """Ask anew for what was asked over the link before."""
        again = dict.fromkeys(self._asked.values())
        self._asked.clear()
        for fetch in again:
            fetch.asks_again = True
            if not fetch.is_busy:
                self._begin_again(fetch)

    def done(self, name: str) -> None:
        """Go on with a blob whose write, or whose last step, has ended."""
        fetch = self._fetches[name]
        fetch.is_busy = False
        if fetch.is_kept:
            self._end(fetch, "")
        elif fetch.is_whole:
            fetch.is_kept = fetch.is_busy = True
            self._effects.disk.append(KeepBlob(name))
        elif fetch.asks_again:
            self._begin_again(fetch)
        elif fetch.arrived:
            self._use_pieces(fetch)

    def failed(self, name: str, problem: str) -> None:
        """Give a blob up."""
        self._effects.disk.append(DropBlob(name, problem))
        self._end(self._fetches[name], problem)

    def _use_pieces(self, fetch: "_Fetch") -> None:
        """Write what has come, and ask for more while that is being written."""
        came, fetch.arrived = fetch.arrived, []
        for data in came:
            problem = fetch.problem(data)
            if problem:
                self.failed(fetch.name, problem)
                return
            fetch.size = data.size
            fetch.written += len(data.data)
        self._ask_for_more(fetch)
        fetch.is_busy = True
        written = b"".join(one.data for one in came)
        self._effects.disk.append(WriteBlob(fetch.name, written))

    def _begin_again(self, fetch: "_Fetch") -> None:
        """Ask again from where it was written to."""
        fetch.arrived.clear()
        fetch.asks_again = False
        fetch.asked = fetch.written
        if not fetch.written:
            fetch.size = None
        self._ask_for_more(fetch)

    def _ask_for_more(self, fetch: "_Fetch") -> None:
        """Keep some pieces asked for; of a blob of unknown size only the first."""
        while fetch.may_ask:
            number = next(self._numbers)
            self._asked[number] = fetch
            asked = ReadBlob(number, fetch.name, fetch.asked, PIECE)
            self._effects.asks.append(asked)
            fetch.asked += PIECE

    def _end(self, fetch: "_Fetch", problem: str) -> None:
        del self._fetches[fetch.name]
        for number in [one for one, of in self._asked.items() if of is fetch]:
            del self._asked[number]
        for attempt, names in list(self._waits.items()):
            if fetch.name in names:
                names.discard(fetch.name)
                if problem or not names:
                    del self._waits[attempt]
                    self._effects.ready.append((attempt, problem))


class _Fetch:
    """One blob that is being fetched."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked = 0
        """Up to where it was asked for."""
        self.arrived: list[BlobData] = []
        """Pieces in order, which came while others were written."""
        self.written = 0
        self.size: int | None = None
        self.is_busy = False
        """Whether the disk has something to do for it."""
        self.asks_again = False
        self.is_kept = False

    @property
    def is_whole(self) -> bool:
        return self.written == self.size

    @property
    def may_ask(self) -> bool:
        if self.size is None:
            return self.asked == 0
        ahead = self.asked - self.written
        return self.asked < self.size and ahead < WINDOW * PIECE

    def problem(self, data: BlobData) -> str:
        """Say why a piece is no part of the blob."""
        if data.missing:
            return f"blob {self.name} is gone from the broker"
        if self.size not in (None, data.size):
            return f"blob {self.name} has another size at the broker than before"
        if len(data.data) != min(PIECE, data.size - self.written):
            # It would be waited for what was left out.
            return f"the broker has sent less of blob {self.name} than it has"
        return ""
