"""Uploads of large blobs: synced as they come, and kept only if every sync worked."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from grass.broker.shell import kept_blobs
from grass.broker.shell.kept_blobs import SYNC_BYTES, BlobLimits, KeptBlobs
from grass.errors import NoDatabase, StorageError
from grass.link.channel import LinkEnd, pair
from grass.link.messages import ToBroker, ToWorker
from grass.link.requests import ReadBlob
from grass.store.blob_folder import BlobFolder
from grass.store.blobs import PIECE

DATA = bytes(range(256)) * (2 * SYNC_BYTES // 256)
NAME = hashlib.sha256(DATA).hexdigest()
LIMITS = BlobLimits(10 * SYNC_BYTES, 10 * SYNC_BYTES)


async def pieces() -> AsyncIterator[bytes]:
    for begin in range(0, len(DATA), PIECE):
        yield DATA[begin : begin + PIECE]
        await asyncio.sleep(0)


class AwayAtFirst:
    """A database that is away when it is asked first."""

    def __init__(self) -> None:
        self.asked = 0

    async def read(self, _query: object) -> list[str]:
        self.asked += 1
        if self.asked == 1:
            raise NoDatabase("the database does not answer")
        return [NAME]


def test_what_could_not_be_removed_is_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_blobs, "LOOK_S", 0.01)
    folder, gone = BlobFolder(tmp_path / "blobs"), asyncio.Event()

    async def story() -> None:
        await uploaded(folder)
        loop, remove = asyncio.get_running_loop(), folder.remove

        def removed(names: Iterable[str], epoch: int) -> None:
            remove(names, epoch)
            loop.call_soon_threadsafe(gone.set)

        monkeypatch.setattr(folder, "remove", removed)
        blobs = KeptBlobs(folder, AwayAtFirst().read, lambda _worker: None, lambda: 0)
        waiting = asyncio.ensure_future(gone.wait())
        running = asyncio.ensure_future(blobs.run())
        both = {waiting, running}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        assert waiting.done()
        running.cancel()

    asyncio.run(story())
    assert folder.size(NAME) is None


def test_a_piece_that_could_not_be_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_blobs, "AGAIN_S", 0.0)
    folder = BlobFolder(tmp_path / "blobs")
    failures = [NoDatabase("the database does not answer")]
    read = folder.read

    def read_later(name: str, offset: int, length: int) -> bytes | None:
        if failures:
            raise failures.pop()
        return read(name, offset, length)

    async def story() -> None:
        await uploaded(folder)
        ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
        near, far = ends
        heard: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        far.listen(heard.set_result, lambda: None)
        monkeypatch.setattr(folder, "read_at_once", lambda *_: None)
        monkeypatch.setattr(folder, "read", read_later)
        blobs = KeptBlobs(folder, AwayAtFirst().read, lambda _worker: near, lambda: 0)
        blobs.received("w1", ReadBlob(1, NAME, 0, 10))
        (said,) = await heard
        assert (said.data, said.size) == (DATA[:10], len(DATA))

    asyncio.run(story())


async def uploaded(folder: BlobFolder) -> bool:
    async def nothing(_query: object) -> list[str]:
        return []

    blobs = KeptBlobs(folder, nothing, lambda _worker: None, lambda: 0)
    return await blobs.add(NAME, pieces(), "uid:1", LIMITS)


def test_a_large_blob_is_synced_before_all_of_it_has_come(tmp_path: Path) -> None:
    sizes: list[int] = []

    def sync(file: int) -> None:
        if not os.path.isdir(f"/proc/self/fd/{file}"):
            sizes.append(os.fstat(file).st_size)

    folder = BlobFolder(tmp_path / "blobs", sync)
    assert asyncio.run(uploaded(folder))
    assert folder.size(NAME) == sizes[-1] == len(DATA)
    assert sizes[0] < len(DATA)


def test_an_error_of_an_early_sync_is_one_of_the_upload(tmp_path: Path) -> None:
    failures = [OSError(5, "Input/output error")]

    def sync(_file: int) -> None:
        if failures:
            raise failures.pop()

    folder = BlobFolder(tmp_path / "blobs", sync)
    with pytest.raises(StorageError, match="Input/output error"):
        asyncio.run(uploaded(folder))
    assert folder.size(NAME) is None
    assert not list((tmp_path / "blobs" / "drafts").iterdir())
