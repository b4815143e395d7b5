"""Numbered lines of an output, and searches in it, with the worker's real files."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.calling import Answer, Api, play

from grass.link.messages import Exited, OutputData, ReadOutput, Start, Started
from grass.link.requests import MatchedLine, ScannedLines
from grass.queries.output import line_index, output_lines, output_search
from grass.queries.output.line_index import LineIndex
from grass.worker.shell import line_scans
from grass.worker.shell.output_files import OutputFiles

Document = dict[str, Any]
Story = Callable[["Disk"], Awaitable[None]]


class Disk:
    """A job with an output file, and a worker that answers what is asked about it."""

    def __init__(self, api: Api, path: Path, group: asyncio.TaskGroup) -> None:
        self.api, self.path = api, path
        self.files = OutputFiles(
            str(path.parent), api.worker.link.send, group.create_task
        )
        self.asked: list[ReadOutput] = []
        self.is_old = False
        """Whether it does not know of scans."""
        self.tells: ScannedLines | None = None
        """What it answers to scans, if not the truth."""
        self.attempt = ""
        self._answering = group.create_task(self._answer())

    async def starts(self, data: bytes) -> None:
        self.path.write_bytes(data)
        await self.api.post("/jobs", {"jobs": [{"command": ["x"]}]})
        start = await self.api.worker.hears(Start)
        assert isinstance(start, Start)
        self.attempt = start.attempt
        self.api.worker.link.send(
            Started(start.attempt, 42, 1_000_000, str(self.path), 0)
        )
        while self.api.broker.state.attempts[1].output is None:
            await self.api.broker.next_commit()

    async def ends(self) -> None:
        size = self.path.stat().st_size
        self.api.worker.link.send(Exited(self.attempt, 2_000_000, 0, output_bytes=size))
        await self.api.broker.ended([1])

    async def lines(self, query: str) -> Document:
        return self._told(await self.api.get(f"/jobs/1/lines?{query}"))

    async def search(self, query: str) -> Document:
        return self._told(await self.api.get(f"/jobs/1/search?{query}"))

    def close(self) -> None:
        self._answering.cancel()
        self.files.close()

    def _told(self, answer: Answer) -> Document:
        assert answer.status == 200, answer.document
        document: Document = answer.document
        return document

    async def _answer(self) -> None:
        while True:
            question = await self.api.worker.hears(ReadOutput)
            assert isinstance(question, ReadOutput)
            self.asked.append(question)
            if self.is_old:
                question.scan = None
            if self.tells is not None:
                self.api.worker.link.send(
                    OutputData(question.stream, b"", scanned=self.tells)
                )
            else:
                self.files.read(question)


def on_disk(folder: Path, told: Story) -> None:
    """Run a story with a job whose output is a real file."""

    async def story(api: Api) -> None:
        async with asyncio.TaskGroup() as group:
            disk = Disk(api, folder / "out.log", group)
            try:
                await told(disk)
            finally:
                disk.close()

    play(folder, story)


def numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(1, count + 1))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few lines are many blocks, steps, marks and parts."""
    monkeypatch.setattr(line_scans, "BLOCK", 32)
    monkeypatch.setattr(line_scans, "STEP_BYTES", 200)
    monkeypatch.setattr(line_index, "MOST_MARKS", 8)
    monkeypatch.setattr(output_search, "SPAN", 300)


def test_the_last_lines_are_read_with_their_numbers(tmp_path: Path) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(numbered(100) + b"unfinished")
        told = await disk.lines("count=3&numbered=1")
        assert told["lines"] == ["line 99", "line 100", "unfinished"]
        assert (told["first"], told["total_lines"], told["ended"]) == (99, 101, False)
        size = disk.path.stat().st_size
        assert (told["size"], told["end"], told["open"]) == (size, size, True)
        assert not (await disk.lines("from=99&count=2"))["open"]
        await disk.ends()
        with disk.path.open("ab") as file:
            file.write(b" by somebody else\n")
        told = await disk.lines("from=end&count=1&numbered=1")
        assert (told["lines"], told["ended"]) == (["unfinished"], True)

    on_disk(tmp_path, story)


def test_last_lines_do_not_wait_until_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_lines, "QUICK_S", 0.0)

    async def story(disk: Disk) -> None:
        await disk.starts(numbered(20_000))
        told = await disk.lines("from=end&count=2")
        assert told["lines"] == ["line 19999", "line 20000"]
        assert (told["first"], told["total_lines"]) == (None, None)
        read = sum(one.length for one in disk.asked if one.scan is None)
        assert read < disk.path.stat().st_size

    on_disk(tmp_path, story)


@pytest.mark.parametrize("line", [1, 2, 31, 32, 33, 499, 500, 501, 777])
@pytest.mark.usefixtures("small")
def test_lines_are_read_from_any_line_on(tmp_path: Path, line: int) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(numbered(500))
        told = await disk.lines(f"from={line}&count=3")
        last = min(500, line + 2)
        assert told["lines"] == [f"line {one}" for one in range(line, last + 1)]
        assert told["first"] == line
        rest = disk.path.read_bytes()[told["offset"] : told["end"]]
        assert rest == b"".join(b"line %d\n" % one for one in range(line, last + 1))

    on_disk(tmp_path, story)


@pytest.mark.usefixtures("small")
def test_an_index_goes_on_where_it_ended_and_begins_anew_when_the_file_is_cut(
    tmp_path: Path,
) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(numbered(100) + b"lin")
        assert (await disk.lines("count=0&numbered=1"))["total_lines"] == 101
        reached = disk.path.stat().st_size
        with disk.path.open("ab") as file:
            file.write(b"e 101\nline 102\n")
        disk.asked.clear()
        told = await disk.lines("from=102&count=2")
        assert told["lines"] == ["line 102"]
        scans = [one for one in disk.asked if one.scan and one.scan.until > one.offset]
        assert [one.offset for one in scans] == [reached]
        disk.path.write_bytes(b"new\n")
        assert (await disk.lines("numbered=1"))["lines"] == ["new"]
        assert (await disk.lines("count=0&numbered=1"))["total_lines"] == 1

    on_disk(tmp_path, story)


def test_progress_bars_are_one_line_and_long_lines_are_cut(tmp_path: Path) -> None:
    async def story(disk: Disk) -> None:
        bar = b"".join(b"\r%3d%%" % percent for percent in range(100)) * 1000
        await disk.starts(b"a\n" + bar + b"\r100%\nb\r\n" + b"x" * 9000 + b"\nc\xff\n")
        told = await disk.lines("from=1")
        assert told["lines"][:3] == ["a", "100%", "b"]
        assert told["lines"][3] == "x" * output_lines.LONGEST_SHOWN
        assert told["lines"][4:] == ["c\ufffd"]
        assert told["cut"] == [3]
        assert told["end"] == disk.path.stat().st_size
        assert (await disk.lines("from=end&numbered=1"))["lines"] == told["lines"]

    on_disk(tmp_path, story)


def test_a_reply_holds_a_bounded_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_lines, "MOST_BYTES", 1_000)

    async def story(disk: Disk) -> None:
        await disk.starts(numbered(10_000))
        first = await disk.lines("from=1&count=5000")
        assert 0 < len(first["lines"]) < 5000
        line = 1 + len(first["lines"])
        following = await disk.lines(f"from={line}&count=1")
        assert following["lines"] == [f"line {line}"]
        assert following["offset"] == first["end"]

    on_disk(tmp_path, story)


@pytest.mark.usefixtures("small")
def test_matches_are_counted_and_told_by_their_lines(tmp_path: Path) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(numbered(500) + b"Line 7 again")
        told = await disk.search("text=LINE+7&limit=2")
        assert [one["line"] for one in told["matches"]] == [7, 70]
        assert (told["count"], told["complete"], told["next"]) == (12, True, None)
        told = await disk.search("pattern=^line.*7$&from=71&limit=1")
        assert told["matches"] == [
            {"line": 77, "at": len(numbered(76)), "text": "line 77"}
        ]
        assert told["count"] == 43
        told = await disk.search("pattern=again$")
        assert [one["line"] for one in told["matches"]] == [501]
        assert (await disk.search("pattern=nowhere"))["matches"] == []

    on_disk(tmp_path, story)


@pytest.mark.usefixtures("small")
def test_the_matches_before_a_line_are_the_last_ones(tmp_path: Path) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(numbered(500))
        told = await disk.search("pattern=0$&back=1&from=300&limit=3")
        assert [one["line"] for one in told["matches"]] == [270, 280, 290]
        assert (told["complete"], told["next"]) == (False, 270)
        told = await disk.search("pattern=0$&back=1&from=25")
        assert [one["line"] for one in told["matches"]] == [10, 20]
        assert (told["complete"], told["next"]) == (True, None)
        told = await disk.search("pattern=500&back=1&from=99999")
        assert [one["line"] for one in told["matches"]] == [500]

    on_disk(tmp_path, story)


@pytest.mark.usefixtures("small")
def test_a_search_may_end_with_the_last_wanted_match(tmp_path: Path) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(numbered(500))
        found, line = list[int](), 1
        while line is not None:
            told = await disk.search(f"pattern=9&count=0&limit=7&from={line}")
            found += [one["line"] for one in told["matches"]]
            line = told["next"]
        assert found == [one for one in range(1, 501) if "9" in str(one)]

    on_disk(tmp_path, story)


def test_a_search_that_takes_too_long_tells_from_where_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_scans, "STEP_BYTES", 1)
    monkeypatch.setattr(line_scans, "BLOCK", 10)
    monkeypatch.setattr(output_search, "MOST_SEARCH_S", 0.0)

    async def story(disk: Disk) -> None:
        await disk.starts(numbered(50))
        told = await disk.search("pattern=.&from=3")
        assert (told["count"], told["complete"], told["next"]) == (0, False, 3)

    on_disk(tmp_path, story)


def test_the_first_traceback_is_found(tmp_path: Path) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(b"one\nTraceback (most recent call last):\n  x\n" * 2)
        told = await disk.search("traceback=first")
        assert [one["line"] for one in told["matches"]] == [2]

    on_disk(tmp_path, story)


def test_searches_of_one_caller_wait_for_each_other(tmp_path: Path) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(numbered(10))
        caller = f"uid:{os.geteuid()}"
        async with disk.api.app.state.api.searching(caller):
            second = asyncio.ensure_future(disk.search("text=1"))
            # Whatever else the caller reads does not wait.
            assert (await disk.lines("numbered=1"))["total_lines"] == 10
            assert not [one for one in disk.asked if one.scan and one.scan.pattern]
        assert (await second)["count"] == 2

    on_disk(tmp_path, story)


@pytest.mark.parametrize(
    "path",
    [
        "lines?from=x",
        "lines?count=-1",
        "lines?attempt=9",
        "search?",
        "search?text=",
        "search?traceback=last",
        f"search?pattern={quote('(')}",
        f"search?pattern={quote('(?<=a)b')}",
        "search?pattern=a&from=x",
    ],
)
def test_what_is_not_understood_is_refused_in_one_line(
    tmp_path: Path, path: str
) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(b"a\n")
        answer = await disk.api.get(f"/jobs/1/{path}")
        assert (answer.status, answer.document["code"]) == (400, "usage")

    on_disk(tmp_path, story)


def test_an_older_worker_shows_last_lines_and_searches_nothing(tmp_path: Path) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(numbered(100))
        disk.is_old = True
        told = await disk.lines("count=2")
        assert (told["lines"], told["first"]) == (["line 99", "line 100"], None)
        for path in ("lines?from=5", "search?text=a"):
            answer = await disk.api.get(f"/jobs/1/{path}")
            assert (answer.status, answer.document["code"]) == (409, "refused")
            assert "worker `desk` has an older grass" in answer.document["detail"]

    on_disk(tmp_path, story)


@pytest.mark.parametrize(
    "wrong",
    [
        {"end": 10**9, "size": 5},
        {"end": 2, "size": 5, "newlines": 3},
        {"end": 2, "size": -1},
        {"end": 2, "size": 5, "marks": [(0, 99)]},
        {"end": 2, "size": 5, "matches": [MatchedLine(0, 0, b"")] * 101},
    ],
)
def test_lines_that_cannot_be_there_are_refused(
    tmp_path: Path, wrong: Document
) -> None:
    async def story(disk: Disk) -> None:
        await disk.starts(b"a\nb\n")
        await disk.ends()
        disk.tells = ScannedLines(**wrong)
        answer = await disk.api.get("/jobs/1/search?text=a")
        assert answer.document["code"] == "protocol"

    on_disk(tmp_path, story)


def test_marks_of_a_long_file_are_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_index, "MOST_MARKS", 16)

    async def story() -> None:
        index = LineIndex(100)
        for step in range(100):
            found = ScannedLines(110 + 10 * step, 0, 1)
            found.marks = [(1, 110 + 10 * step)]
            index.add(found)
        assert (index.newlines, index.total, index.reached) == (100, 100, 1100)
        for line in range(101):
            known, offset = index.before(line)
            assert known <= line
            assert offset == 100 + 10 * known
        assert index.before(0) == (0, 100)
        assert index.before_offset(0) == (0, 100)

    asyncio.run(story())
