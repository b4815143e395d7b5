"""The last lines of output, and following it over several attempts."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.calling import Answer, Api, play

from grass.link.messages import Exited, OutputData, ReadOutput, Start, Started
from grass.queries.output import output_sources
from grass.queries.output.output_sources import find_end, find_lines


class Files:
    """A worker's disk, which answers whatever it is asked."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.content: dict[str, bytes] = {}
        self._waiting: list[ReadOutput] = []
        self._readers = asyncio.Semaphore(0)
        self._answering = asyncio.ensure_future(self._answer())

    def write(self, path: str, data: bytes) -> None:
        self.content[path] = self.content.get(path, b"") + data
        waiting, self._waiting = self._waiting, []
        for question in waiting:
            self._reply(question)

    async def are_awaited_by(self, readers: int) -> None:
        """Return when so many have read all there is and wait for more."""
        for _ in range(readers):
            await self._readers.acquire()

    def close(self, refusal: str = "") -> None:
        self._answering.cancel()

    async def _answer(self) -> None:
        while True:
            question = await self.api.worker.hears(ReadOutput)
            assert isinstance(question, ReadOutput)
            self._reply(question)

    def _reply(self, question: ReadOutput) -> None:
        content = self.content[question.path]
        data = content[question.offset : question.offset + question.length]
        if question.wait and not data:
            self._waiting.append(question)
            self._readers.release()
        else:
            self.api.worker.link.send(OutputData(question.stream, data))


async def starts(api: Api, files: Files, data: bytes = b"") -> str:
    start = await api.worker.hears(Start)
    assert isinstance(start, Start)
    path = f"/out/{start.number}.log"
    files.write(path, data)
    api.worker.link.send(Started(start.attempt, 42, 1_000_000, path, 0))
    return start.attempt


async def enqueue(api: Api, **fields: Any) -> None:
    answer = await api.post("/jobs", {"jobs": [{"command": ["x"], **fields}]})
    assert answer.status == 200


async def finished(api: Api, data: bytes) -> Files:
    files = Files(api)
    await enqueue(api)
    attempt = await starts(api, files, data)
    api.worker.link.send(Exited(attempt, 2_000_000, 0, output_bytes=len(data)))
    await api.broker.ended([1])
    return files


@pytest.mark.parametrize(
    ("tail", "shown"),
    [
        ("0", b""),
        ("1", b"three\n"),
        ("2", b"two\nthree\n"),
        ("9", b"one\ntwo\nthree\n"),
    ],
)
def test_the_last_lines_of_an_ended_job_are_read(
    tmp_path: Path, tail: str, shown: bytes
) -> None:
    async def story(api: Api) -> None:
        files = await finished(api, b"one\ntwo\nthree\n")
        # Somebody else appended to the file since.
        files.write("/out/1.log", b"four\n")
        answer = await api.get(f"/jobs/1/output?tail={tail}")
        assert (answer.status, answer.body) == (200, shown)
        files.close()

    play(tmp_path, story)


@pytest.mark.parametrize(
    "query", ["tail=x", "tail=-1", "attempt=2", "begin=x", "begin=7:0"]
)
def test_a_bad_place_to_begin_is_refused(tmp_path: Path, query: str) -> None:
    async def story(api: Api) -> None:
        files = await finished(api, b"one\n")
        answer = await api.get(f"/jobs/1/output?{query}")
        assert (answer.status, answer.document["code"]) == (400, "usage")
        files.close()

    play(tmp_path, story)


def test_following_may_begin_with_the_last_lines(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        files = Files(api)
        await enqueue(api)
        attempt = await starts(api, files, b"one\ntwo\nthr")
        await until_running(api)
        following = asyncio.ensure_future(api.get("/jobs/1/output?follow=1&tail=2"))
        await files.are_awaited_by(1)
        files.write("/out/1.log", b"ee\n")
        api.worker.link.send(Exited(attempt, 2_000_000, 0, output_bytes=14))
        assert (await following).body == b"two\nthree\n"
        files.close()

    play(tmp_path, story)


def test_following_goes_on_with_the_next_attempt(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        files = Files(api)
        await enqueue(api, retries=1)
        attempt = await starts(api, files, b"first\n")
        await until_running(api)
        following = asyncio.ensure_future(api.get("/jobs/1/output?follow=1"))
        first = asyncio.ensure_future(api.get("/jobs/1/output?follow=1&attempt=1"))
        second = asyncio.ensure_future(api.get("/jobs/1/output?follow=1&attempt=2"))
        await files.are_awaited_by(2)
        api.worker.link.send(Exited(attempt, 2_000_000, 1, output_bytes=6))
        attempt = await starts(api, files, b"second\n")
        assert (await first).body == b"first\n"
        api.worker.link.send(Exited(attempt, 3_000_000, 0, output_bytes=7))
        assert (await following).body == b"first\nsecond\n"
        assert (await second).body == b"second\n"
        again = await api.get("/jobs/1/output?follow=1&begin=1:2")
        assert again.body == b"rst\nsecond\n"
        files.close()

    play(tmp_path, story)


def test_an_attempt_that_never_comes_is_not_waited_for(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        files = Files(api)
        await enqueue(api)
        waiting = asyncio.ensure_future(api.get("/jobs/1/output?follow=1&attempt=2"))
        attempt = await starts(api, files, b"x")
        api.worker.link.send(Exited(attempt, 2_000_000, 0, output_bytes=1))
        answer: Answer = await waiting
        assert (answer.status, answer.document["code"]) == (400, "usage")
        files.close()

    play(tmp_path, story)


async def until_running(api: Api) -> None:
    while "starting" in (await api.get("/jobs/1")).document["flags"]:
        await api.broker.moved(1)


LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"x")))


@given(
    lines=LINES, begin=st.integers(0, 50), ends=st.booleans(), wanted=st.integers(0, 9)
)
def test_lines_are_found_from_the_end(
    lines: list[bytes], begin: int, ends: bool, wanted: int
) -> None:
    content = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    whole = b"?" * begin + content

    async def read(offset: int, length: int) -> bytes:
        assert length <= output_sources.PIECE
        return whole[offset : offset + length]

    async def search() -> None:
        end = await find_end(read, begin)
        assert end == len(whole)
        place = await find_lines(read, begin, end, wanted)
        expected = b"".join(_lines(content)[-wanted:]) if wanted else b""
        assert whole[place:] == expected

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_sources, "PIECE", 8)
        asyncio.run(search())


def tail_of(size: int, newlines: set[int], wanted: int) -> tuple[int, int]:
    """Look for lines in a file of zeros; tell how much of it was not read."""
    seen = 0

    async def read(offset: int, length: int) -> bytes:
        nonlocal seen
        end = min(offset + length, size)
        seen += max(0, end - offset)
        piece = bytearray(max(0, end - offset))
        for place in newlines:
            if offset <= place < end:
                piece[place - offset] = 10
        return bytes(piece)

    return asyncio.run(find_lines(read, 0, size, wanted)), seen


def test_a_line_without_end_is_not_read_as_a_whole() -> None:
    size, most = 5 << 30, output_sources.LONGEST_LINE + output_sources.PIECE
    place, seen = tail_of(size, set(), 10)
    assert (
        size - most <= place < size - output_sources.LONGEST_LINE + output_sources.PIECE
    )
    assert seen <= most + 1


def test_lines_before_a_long_one_are_found_as_long_as_it_is_not_too_long() -> None:
    size = 1 << 30
    newlines = {size - 3_000_000, size - 2_200_000, size - 1_500_000, size - 600_000}
    assert tail_of(size, newlines, 3)[0] == size - 2_200_000 + 1
    assert tail_of(size, newlines, 4)[0] == size - 3_000_000 + 1
    place, seen = tail_of(size, newlines, 9)
    assert (
        size - 3_000_000 - place <= output_sources.LONGEST_LINE + output_sources.PIECE
    )
    assert seen < 5_000_000


def _lines(content: bytes) -> list[bytes]:
    parts = [line + b"\n" for line in content.split(b"\n")]
    parts[-1] = parts[-1][:-1]
    return parts if parts[-1] else parts[:-1]
