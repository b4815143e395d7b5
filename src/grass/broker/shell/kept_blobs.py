"""The blobs that clients upload and jobs name: kept as long as somebody needs them.

A blob that was uploaded, or asked for, is kept for an hour, in which an enqueue may
name it; from then on as long as the store has a job that does. What nobody names is
removed when that hour is over, after a prune, and at start. While an enqueue is under
way its blobs are held, so that none is removed between the check and the commit.

Bytes go through in pieces: an upload has one in memory, and one is being written. What
is uploaded has threads of its own, as a sync of two gigabytes may take a minute: calls
that name blobs, and workers that read them, do not wait for it.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeVar

from grass.broker.core.jobs.blob_claims import BlobClaims, Upload
from grass.broker.shell.links import LinkOf
from grass.errors import GrassError, MissingBlob, ProtocolError, TooLarge
from grass.event_log import EventLog
from grass.keeper.crash_points import crash_point
from grass.link.requests import BLOB_PIECE, BlobData, ReadBlob
from grass.model.jobs.task_call import is_blob_name
from grass.store.blobs import PIECE, BlobDraft, Blobs
from grass.store.interface import Store

log = EventLog(__name__)

T = TypeVar("T")

LOOK_S = 60.0
"""How often it is looked for blobs whose time is over."""
AGAIN_S = 1.0
"""How soon a piece is read again that could not be read."""
TOGETHER = 1000
"""How many are looked up at a time."""
THREADS = 2
"""For uploads; and as many for all else."""
SYNC_BYTES = 16 * 2**20
"""How much of an upload is synced at a time."""
MOST_ASKED = 64
"""How many pieces a worker may ask for before the first is sent."""

ReadStore = Callable[[Callable[[Store], list[str]]], Awaitable[list[str]]]


class BlobLimits(NamedTuple):
    """In bytes: what somebody may upload."""

    largest: int
    unnamed: int
    """Together, before a job names them."""


class KeptBlobs:
    """The blobs of one broker's store."""

    def __init__(
        self, blobs: Blobs, read: ReadStore, link_of: LinkOf, epoch: Callable[[], int]
    ) -> None:
        """`read` runs a query on what is committed; `link_of` finds a worker's link.

        `epoch` tells in which one this broker leads.
        """
        self._epoch = epoch
        self._link_of = link_of
        self._blobs = blobs
        self._read = read
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="blob")
        self._uploads = ThreadPoolExecutor(THREADS, thread_name_prefix="blob-upload")
        self._claims = BlobClaims()
        self._asked: dict[str, deque[ReadBlob]] = {}
        """By worker: pieces that it asked for and was not sent."""
        self._answering: set[asyncio.Future[None]] = set()
        self._deciding = asyncio.Lock()
        """Held while blobs are removed, and while they are looked up."""

    async def missing(self, names: Iterable[str]) -> list[str]:
        """Return those that are not there; the others are kept for an hour."""
        async with self._deciding:
            known = list(dict.fromkeys(names))
            gone = await self._in_thread(lambda: self._blobs.missing(known))
            self._keep(set(known).difference(gone))
        return gone

    def room(self, owner: str, most: int) -> int:
        """Return how many bytes somebody may upload before a job names them."""
        return self._claims.room(owner, most)

    async def add(
        self, name: str, pieces: AsyncIterator[bytes], owner: str, limits: BlobLimits
    ) -> bool:
        """Keep a blob durably; return whether it is new."""
        with self._claims.upload(name, owner, limits.unnamed) as upload:
            draft = await self._in_upload(lambda: self._blobs.begin(name))
            try:
                await self._write(draft, _together(pieces, upload, limits.largest))
                crash_point("broker.before-blob")
                upload.is_new = await self._in_upload(draft.finish)
                crash_point("broker.after-blob")
            finally:
                await asyncio.shield(self._in_upload(draft.discard))
            self._keep([name])
            return upload.is_new

    async def _write(self, draft: BlobDraft, pieces: AsyncIterator[bytearray]) -> None:
        """Write pieces, each while the next one comes.

        A large blob is synced as it comes, or the disk would do nothing until its end.
        """
        working: dict[str, asyncio.Future[None]] = {}
        unsynced = 0
        try:
            async for piece in pieces:
                if "write" in working:
                    await working["write"]
                write = self._in_upload(lambda data=piece: draft.write(data))  # type: ignore[misc]
                working["write"] = asyncio.ensure_future(write)
                unsynced += len(piece)
                syncing = working.get("sync")
                if unsynced >= SYNC_BYTES and (syncing is None or syncing.done()):
                    if syncing is not None:
                        # An error of the disk is told once.
                        await syncing
                    working["sync"] = asyncio.ensure_future(self._in_upload(draft.sync))
                    unsynced = 0
        finally:
            # All of it: a file must not be closed under a thread that uses it.
            both = asyncio.gather(*working.values(), return_exceptions=True)
            outcomes = await asyncio.shield(both)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    def _keep(self, names: Iterable[str]) -> None:
        self._claims.keep(names, asyncio.get_running_loop().time())

    @contextlib.asynccontextmanager
    async def held(self, names: Iterable[str]) -> AsyncIterator[None]:
        """Keep blobs while the block runs, after which jobs name them; or refuse."""
        known = list(dict.fromkeys(names))
        self._claims.hold(known)
        try:
            await self._check(known)
            yield
            self._claims.drop(known)
        finally:
            self._claims.release(known)

    async def _check(self, names: list[str]) -> None:
        """Refuse a call that names a blob which is not there."""
        unsure = self._claims.unsure(names)
        if not unsure:
            return
        async with self._deciding:
            gone = await self._in_thread(lambda: self._blobs.missing(unsure))
        if gone:
            raise MissingBlob(
                f"blob {gone[0]} is not there, which the call names",
                "upload it first: PUT /blobs/{name}",
            )
        self._claims.found(unsure)

    async def read(
        self, name: str, offset: int, length: int
    ) -> tuple[bytes, int] | None:
        """Read a piece, with the size of the whole; None: the blob is not there."""

        def read() -> tuple[bytes, int] | None:
            data, size = self._blobs.read(name, offset, length), self._blobs.size(name)
            return None if data is None or size is None else (data, size)

        data = self._blobs.read_at_once(name, offset, length)
        size = None if data is None else self._blobs.size(name)
        if data is not None and size is not None:
            return data, size
        return await self._in_thread(read)

    def received(self, worker: str, message: ReadBlob) -> None:
        """Answer a worker that asks for a piece, in the order of its requests.

        Pieces that were asked for and not sent are limited: it may not read them.
        """
        link, waiting = self._link_of(worker), self._asked.setdefault(worker, deque())
        if link is None:
            return
        if len(waiting) >= MOST_ASKED:
            raise ProtocolError("a worker asks for too many pieces of blobs at a time")
        waiting.append(message)
        if len(waiting) == 1:
            answering = asyncio.ensure_future(self._answer(worker, waiting))
            self._answering.add(answering)
            answering.add_done_callback(self._answering.discard)

    async def _answer(self, worker: str, waiting: "deque[ReadBlob]") -> None:
        while waiting:
            asked, found = waiting[0], None
            try:
                found = await self._piece(asked)
            except GrassError as error:
                log.warning("blobs.unreadable", worker=worker, error=error)
                await asyncio.sleep(AGAIN_S)
                if self._asked.get(worker) is waiting:
                    continue
            link = self._link_of(worker)
            if link is None or self._asked.get(worker) is not waiting:
                return
            waiting.popleft()
            if found is None:
                link.send(BlobData(asked.number, missing=True))
            else:
                link.send(BlobData(asked.number, *found))

    async def _piece(self, asked: ReadBlob) -> tuple[bytes, int] | None:
        if not is_blob_name(asked.name) or asked.offset < 0:
            return None
        length = min(max(0, asked.length), BLOB_PIECE)
        return await self.read(asked.name, asked.offset, length)

    def gone(self, worker: str) -> None:
        """Drop what a worker asked for over a link that is not used any more."""
        self._asked.pop(worker, None)

    async def forget(self, names: Iterable[str]) -> None:
        """Remove those that no job names any more, unless a client counts on them."""
        wanted = iter(dict.fromkeys(names))
        while some := list(islice(wanted, TOGETHER)):
            async with self._deciding:
                epoch = self._epoch()
                free = self._claims.unclaimed(some)
                unnamed = await self._read(lambda db: db.unnamed_blobs(free))  # noqa: B023
                left = self._claims.removable(unnamed)
                await self._in_thread(lambda: self._blobs.remove(left, epoch))  # noqa: B023

    async def run(self) -> None:
        """Remove what nobody needs: now, and whenever an hour is over."""
        looked = False
        try:
            while True:
                try:
                    # Those that were not removed are found among all.
                    now = asyncio.get_running_loop().time()
                    await (self._expire(now) if looked else self._forget_all())
                    looked = True
                except GrassError as error:
                    log.warning("blobs.not_removed", error=error)
                    looked = False
                await asyncio.sleep(LOOK_S)
        finally:
            self._threads.shutdown(wait=False)
            self._uploads.shutdown(wait=False)

    async def _forget_all(self) -> None:
        await self.forget(await self._in_thread(lambda: list(self._blobs.names())))

    async def _expire(self, now: float) -> None:
        await self.forget(self._claims.over(now))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _in_upload(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._uploads, work)


async def _together(
    pieces: AsyncIterator[bytes], upload: Upload, most: int
) -> AsyncIterator[bytearray]:
    """Join small pieces to those of the usual size; refuse more than is allowed."""
    gathered, size = bytearray(), 0
    async for piece in pieces:
        size += len(piece)
        if size > most:
            raise too_large(most)
        upload.add(len(piece))
        gathered += piece
        if len(gathered) >= PIECE:
            yield gathered
            gathered = bytearray()
    if gathered:
        yield gathered


def too_large(most: int) -> TooLarge:
    """Return the error for a blob that is larger than the settings allow."""
    return TooLarge(
        f"the blob is larger than {most:,} bytes",
        "the broker's setting tasks.largest says how large one may be",
    )
