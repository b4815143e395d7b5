"""Blobs on a worker: fetched in pieces, kept, and removed when there is too much."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from grass.link.requests import BLOB_PIECE, BlobData, ReadBlob
from grass.store.blob_folder import BlobFolder
from grass.worker.core.blob_fetches import WINDOW
from grass.worker.shell.blob_files import (
    MOST_NOTED,
    RECENT_S,
    BlobFiles,
    folder_of_boot,
)

LARGE = os.urandom(3 * BLOB_PIECE) * 4


def name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class FarBroker:
    """A broker that has some blobs, and a worker that fetches them."""

    def __init__(self, folder: Path, *blobs: bytes, most: int | None = 2**30) -> None:
        self.has = {name_of(blob): blob for blob in blobs}
        self.asked: list[ReadBlob] = []
        self.is_asked = asyncio.Event()
        self.answers = True
        self.told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.running: set[str] = set()
        self.folder = BlobFolder(folder)
        self.files = BlobFiles(
            (str(folder), most),
            self.running.__contains__,
            self.ask,
            asyncio.ensure_future,
            lambda attempt, problem: self.told.put_nowait((attempt, problem)),
        )

    def ask(self, request: ReadBlob) -> None:
        self.asked.append(request)
        self.is_asked.set()
        if self.answers:
            self.answer(request)

    def answer(self, request: ReadBlob) -> None:
        blob = self.has.get(request.name)
        if blob is None:
            answer = BlobData(request.number, missing=True)
        else:
            piece = blob[request.offset : request.offset + request.length]
            answer = BlobData(request.number, piece, len(blob))
        asyncio.get_running_loop().call_soon(self.files.received, answer)

    def need(self, attempt: str, *blobs: bytes) -> bool:
        self.running.add(attempt)
        return self.files.need(attempt, map(name_of, blobs))


def play(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(story(), 30))


def test_a_blob_is_fetched_once_for_all_that_name_it(tmp_path: Path) -> None:
    async def story() -> None:
        far = FarBroker(tmp_path, LARGE, b"small", b"")
        assert not far.need("a", LARGE, b"small")
        assert not far.need("b", LARGE)
        told = {await far.told.get(), await far.told.get()}
        assert told == {("a", ""), ("b", "")}
        assert far.folder.read(name_of(LARGE), 0, 2**30) == LARGE
        pieces = [one.offset for one in far.asked if one.name == name_of(LARGE)]
        assert pieces == list(range(0, len(LARGE), BLOB_PIECE))
        assert far.need("c", LARGE, b"small")
        # To make room one may be removed while messages are being read.
        far.folder.remove([name_of(b"small")])
        assert not far.need("d", LARGE, b"small")
        assert await far.told.get() == ("d", "")
        assert not far.need("d", b"")
        assert await far.told.get() == ("d", "")

    play(story)


def test_no_more_than_a_few_pieces_are_under_way(tmp_path: Path) -> None:
    async def story() -> None:
        far = FarBroker(tmp_path, LARGE)
        far.answers = False
        far.need("a", LARGE)
        await far.is_asked.wait()
        far.is_asked.clear()
        far.answer(far.asked[0])
        await far.is_asked.wait()
        assert len(far.asked) == 1 + WINDOW

    play(story)


def test_a_new_connection_goes_on_where_it_was(tmp_path: Path) -> None:
    async def story() -> None:
        far = FarBroker(tmp_path, LARGE)
        far.answers = False
        far.need("a", LARGE)
        await far.is_asked.wait()
        far.is_asked.clear()
        far.answer(far.asked[0])
        await far.is_asked.wait()
        far.answers = True
        before = len(far.asked)
        far.files.connected()
        assert await far.told.get() == ("a", "")
        assert far.asked[before].offset == BLOB_PIECE
        assert far.folder.read(name_of(LARGE), 0, 2**30) == LARGE

    play(story)


def test_a_blob_that_is_gone_or_wrong_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        far = FarBroker(tmp_path, b"x")
        assert not far.need("a", b"nobody has this")
        attempt, problem = await far.told.get()
        assert (attempt, "is gone from the broker" in problem) == ("a", True)
        far.has[name_of(b"right")] = b"wrong"
        assert not far.need("b", b"right")
        attempt, problem = await far.told.get()
        assert (attempt, "SHA-256" in problem) == ("b", True)
        assert not list(far.folder.names())

    play(story)


def test_what_was_used_longest_ago_is_removed_but_nothing_in_use(
    tmp_path: Path,
) -> None:
    blobs = [bytes([number]) * 1000 for number in range(5)]

    async def story() -> None:
        far = FarBroker(tmp_path, *blobs, most=2500)
        for number, blob in enumerate(blobs[:3]):
            assert not far.need(f"{number}", blob)
            await far.told.get()
            at = 1_000_000 + number
            os.utime(far.folder.path(name_of(blob)), (at, at))
        assert len(list(far.folder.names())) == 3
        far.running = {"0"}
        far.files._is_running = far.running.__contains__
        assert not far.need("3", blobs[3])
        await far.told.get()
        # The first is in use, the fourth is new.
        left = {name_of(blobs[0]), name_of(blobs[3])}
        assert set(far.folder.names()) == left
        assert RECENT_S > 0

    play(story)


def test_attempts_that_ended_are_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        for most in (None, 2**30):
            far = FarBroker(tmp_path, b"x", most=most)
            for number in range(10 * MOST_NOTED):
                attempt = f"{number}"
                if not far.need(attempt, b"x"):
                    assert await far.told.get() == (attempt, "")
                far.running.discard(attempt)
            assert len(far.files._users) <= MOST_NOTED

    play(story)


def test_what_was_fetched_before_a_restart_of_the_machine_is_removed(
    tmp_path: Path,
) -> None:
    assert folder_of_boot(str(tmp_path / "none"), "b") == str(tmp_path / "none" / "b")
    for boot in ("one", "two"):
        (tmp_path / boot / "ab").mkdir(parents=True)
    assert folder_of_boot(str(tmp_path), "two") == str(tmp_path / "two")
    assert [one.name for one in tmp_path.iterdir()] == ["two"]


def test_a_piece_that_is_cut_off_is_told_and_not_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        for cut in (LARGE[: BLOB_PIECE - 1], b""):
            far = FarBroker(tmp_path, LARGE)
            far.answers = False
            far.need("a", LARGE)
            await far.is_asked.wait()
            far.files.received(BlobData(far.asked[0].number, cut, len(LARGE)))
            attempt, problem = await far.told.get()
            assert (attempt, "has sent less of blob" in problem) == ("a", True)
            assert not list(far.folder.names())

    play(story)
