"""The blobs of a broker: the real claims, with a disk that takes its time.

The counterpart of `grass.broker.shell.kept_blobs`. Looking for blobs and removing them
take turns there by a lock, and here by a line. What is read may be spoiled: a disk
that rots, or a file that somebody has cut off or removed.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Protocol

from grass.api.routes.job_calls import blobs_of
from grass.broker.core.calls import AnyCall, Enqueue
from grass.broker.core.jobs.blob_claims import BlobClaims
from grass.errors import LeadLost, MissingBlob, StorageError
from grass.link.messages import ToWorker
from grass.link.requests import BlobData, ReadBlob
from grass.store.interface import JobDetails
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.world import MILLISECOND, SECOND, Host, Life, Violation

LOOK_US = 500 * MILLISECOND
MISSING, ROTTEN, CUT = "missing", "rotten", "cut"
SPOILS = (MISSING, ROTTEN, CUT)


class Reply(Protocol):
    """A caller who waits."""

    def answer(self, outcome: object) -> None:
        """Be told what came of it."""


class SpoiledBlobs:
    """What is wrong with blobs, in the life of a whole disk."""

    def __init__(self) -> None:
        self.share = 0.0
        """How many of the pieces that are read are spoiled."""
        self.names: set[str] = set()
        """Blobs of which a piece was spoiled."""


class SimKeptBlobs:
    """The blobs of one broker's life."""

    def __init__(
        self,
        host: Host,
        life: Life,
        store: FaultyStore,
        epoch: Callable[[], int],
        spoiled: SpoiledBlobs,
    ) -> None:
        self._host, self._life, self._store = host, life, store
        self._epoch, self._spoiled = epoch, spoiled
        self._claims = BlobClaims()
        self._line: deque[Callable[[], None]] = deque()
        # A source of its own: runs without blobs have the history they had.
        self._rng = Random(f"blobs {host.seed} {host.now}")
        self._slowest_us = self._rng.choice((5, 300)) * MILLISECOND
        if list(store.blobs.names()):
            self.forget(list(store.blobs.names()))

    def enqueue(
        self, call: Enqueue, reply: Reply, post: Callable[[AnyCall, Reply], None]
    ) -> None:
        """Hold the blobs of a call, look for them, and make it or refuse it."""
        names = blobs_of(call)
        self._claims.hold(names)
        holding = _Holding(self._claims, names, reply)
        unsure = self._claims.unsure(names)

        def make() -> None:
            # It may wait for others in the inbox, and for a slow disk.
            self._later("makes the call", lambda: post(call, holding))

        if not unsure:
            make()
            return

        def look() -> None:
            gone = self._store.blobs.missing(unsure)
            self._next()
            if gone:
                holding.answer(MissingBlob(f"blob {gone[0]} is not there"))
            else:
                self._claims.found(unsure)
                make()

        self._in_line(lambda: self._later("looks for blobs", look))

    def upload(self, name: str, data: bytes, done: Callable[[], None]) -> None:
        """Keep a blob, a while later."""

        def keep() -> None:
            draft = self._store.blobs.begin(name)
            draft.write(data)
            draft.finish()
            self._claims.keep([name], self._host.now / SECOND)
            self._host.after(LOOK_US, "blobs are over", self._expire, self._life)
            done()

        self._later("keeps a blob", keep)

    def _expire(self) -> None:
        over = self._claims.over(self._host.now / SECOND)
        if over:
            self.forget(over)
        if self._claims.is_any:
            self._host.after(LOOK_US, "blobs are over", self._expire, self._life)

    def pruned(self, jobs: list[JobDetails]) -> None:
        """Forget the blobs of jobs that are gone."""
        names = [one.spec.task.function for one in jobs if one.spec.task is not None]
        names += [one.job.arguments_blob for one in jobs if one.job.arguments_blob]
        if names:
            self.forget(names)

    def forget(self, names: list[str]) -> None:
        """Remove those that nobody needs."""

        def ask() -> None:
            free, epoch = self._claims.unclaimed(names), self._epoch()
            self._later("asks the store", lambda: read(free, epoch))

        def read(free: list[str], epoch: int) -> None:
            try:
                unnamed = self._store.read(lambda store: store.unnamed_blobs(free))
            except StorageError:
                self._next()
                return
            left = self._claims.removable(unnamed)
            self._later("removes blobs", lambda: remove(left, epoch))

        def remove(left: list[str], epoch: int) -> None:
            with suppress(LeadLost):
                self._store.blobs.remove(left, epoch)
                named = set(left).difference(self._store.unnamed_blobs(left))
                if named:
                    raise Violation(f"blob {min(named)} is removed, and a job names it")
            self._next()

        self._in_line(ask)

    def read(self, asked: ReadBlob, send: Callable[[ToWorker], None]) -> None:
        """Send a piece, which may be spoiled."""
        blobs = self._store.blobs
        data, size = blobs.read(asked.name, asked.offset, asked.length), 0
        is_spoiled = self._rng.random() < self._spoiled.share
        how = self._rng.choice(SPOILS) if is_spoiled else ""
        if how:
            self._spoiled.names.add(asked.name)
            self._host.world.faults[f"blob {how}"] += 1
        if data is None or how == MISSING:
            send(BlobData(asked.number, missing=True))
            return
        size = blobs.size(asked.name) or 0
        if how == ROTTEN and data:
            data = bytes([data[0] ^ 1]) + data[1:]
        send(BlobData(asked.number, data[:-1] if how == CUT else data, size))

    # The lock.

    def _in_line(self, act: Callable[[], None]) -> None:
        self._line.append(act)
        if len(self._line) == 1:
            act()

    def _next(self) -> None:
        self._line.popleft()
        if self._line:
            self._line[0]()

    def _later(self, what: str, act: Callable[[], None]) -> None:
        delay = int(20 + self._rng.random() * self._slowest_us)
        self._host.after(delay, what, act, self._life)


class _Holding:
    """The reply to a call whose blobs are held."""

    def __init__(self, claims: BlobClaims, names: list[str], reply: Reply) -> None:
        self._claims, self._names, self._reply = claims, names, reply

    def answer(self, outcome: object) -> None:
        """Hold them no more: jobs name them, or nobody does."""
        if not isinstance(outcome, Exception):
            self._claims.drop(self._names)
        self._claims.release(self._names)
        self._reply.answer(outcome)
