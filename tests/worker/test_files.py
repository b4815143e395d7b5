"""Output files: read in pieces, waited for, removed."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from grass.link.messages import (
    CloseOutput,
    OutputData,
    ReadOutput,
    Removed,
    RemoveOutput,
)
from grass.worker.shell.inotify import FileWatcher
from grass.worker.shell.output_files import LARGEST_CHUNK, OutputFiles
from tests.support.patience import PATIENCE_S

Answers = asyncio.Queue[Any]
Story = Callable[[OutputFiles, Answers], Awaitable[None]]


def play(folder: Path, story: Story) -> None:
    """Give the story files to ask and a queue with the answers."""

    async def run() -> None:
        answers: Answers = asyncio.Queue()
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            files = OutputFiles(str(folder), answers.put_nowait, group.create_task)
            try:
                await story(files, answers)
            finally:
                files.close()

    asyncio.run(run())


async def all_read(files: OutputFiles, answers: Answers, path: Path) -> None:
    """Return when the questions before this one have been looked at."""
    files.read(ReadOutput(99, str(path), 0, 0))
    assert (await answers.get()).stream == 99


def test_a_file_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"hello world")

    async def story(files: OutputFiles, answers: Answers) -> None:
        files.read(ReadOutput(1, str(path), 0, 5))
        assert await answers.get() == OutputData(1, b"hello")
        files.read(ReadOutput(2, str(path), 6, 100))
        assert await answers.get() == OutputData(2, b"world")
        files.read(ReadOutput(3, str(path), 99, 100))
        assert await answers.get() == OutputData(3, b"")

    play(tmp_path, story)


def test_a_piece_is_never_larger_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"x" * (LARGEST_CHUNK + 10))

    async def story(files: OutputFiles, answers: Answers) -> None:
        files.read(ReadOutput(1, str(path), 0, 2**40))
        assert len((await answers.get()).data) == LARGEST_CHUNK

    play(tmp_path, story)


def test_a_file_that_is_gone_is_missing(tmp_path: Path) -> None:
    async def story(files: OutputFiles, answers: Answers) -> None:
        for stream, wait in ((1, False), (2, True)):
            files.read(ReadOutput(stream, str(tmp_path / "no"), 0, 5, wait))
            assert await answers.get() == OutputData(stream, b"", missing=True)
        files.read(ReadOutput(3, str(tmp_path), 0, 5))
        assert (await answers.get()).data == b""

    play(tmp_path, story)


def test_what_is_no_file_has_nothing_to_show_and_blocks_no_other(
    tmp_path: Path,
) -> None:
    pipe, path = tmp_path / "pipe", tmp_path / "out"
    os.mkfifo(pipe)
    path.write_bytes(b"hello")

    async def story(files: OutputFiles, answers: Answers) -> None:
        for stream in range(4):
            files.read(ReadOutput(stream, str(pipe), 0, 5))
            assert await answers.get() == OutputData(stream, b"")
        files.read(ReadOutput(5, str(path), 0, 5))
        assert await answers.get() == OutputData(5, b"hello")

    play(tmp_path, story)


def test_waiting_readers_are_woken_when_the_file_grows(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")

    async def story(files: OutputFiles, answers: Answers) -> None:
        for stream in (1, 2, 3):
            files.read(ReadOutput(stream, str(path), 3, 10, wait=True))
        files.close_stream(CloseOutput(3))
        await all_read(files, answers, path)
        with path.open("ab") as file:
            file.write(b"new")
        seen = [await answers.get(), await answers.get()]
        assert sorted(one.stream for one in seen) == [1, 2]
        assert {one.data for one in seen} == {b"new"}
        assert not files._waiting
        assert answers.empty()

    play(tmp_path, story)


def test_a_waiting_reader_with_news_already_there_gets_it_at_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"news")

    async def story(files: OutputFiles, answers: Answers) -> None:
        files.read(ReadOutput(1, str(path), 0, 10, wait=True))
        assert await answers.get() == OutputData(1, b"news")

    play(tmp_path, story)


def test_two_names_of_one_file_are_both_watched(tmp_path: Path) -> None:
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_bytes(b"")
    link.symlink_to(path)

    async def story(files: OutputFiles, answers: Answers) -> None:
        files.read(ReadOutput(1, str(path), 0, 10, wait=True))
        files.read(ReadOutput(2, str(link), 0, 10, wait=True))
        await all_read(files, answers, path)
        path.write_bytes(b"x")
        seen = [await answers.get(), await answers.get()]
        assert sorted(one.stream for one in seen) == [1, 2]

    play(tmp_path, story)


def test_pruned_output_is_removed_with_its_empty_folders(tmp_path: Path) -> None:
    folder = tmp_path / "output"
    gone = folder / "p" / "n" / "1" / "1.log"
    kept = folder / "p" / "n" / "2" / "1.log"
    outside = tmp_path / "thesis.txt"
    for path in (gone, kept, outside):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")

    async def story(files: OutputFiles, answers: Answers) -> None:
        sneaky = f"{folder}/../thesis.txt"
        paths = [str(gone), str(outside), sneaky, "thesis.txt"]
        files.remove(RemoveOutput(paths, 7))
        assert await answers.get() == Removed(7)

    play(folder, story)
    assert not gone.parent.exists()
    assert kept.exists()
    assert outside.exists()
    assert folder.exists()


def test_a_removal_that_was_cut_off_is_finished(tmp_path: Path) -> None:
    folder = tmp_path / "output"
    (folder / "p" / "n").mkdir(parents=True)

    async def story(files: OutputFiles, answers: Answers) -> None:
        files.remove(RemoveOutput([str(folder / "p" / "n" / "1" / "1.log")], 1))
        assert await answers.get() == Removed(1)

    play(folder, story)
    assert list(folder.iterdir()) == []


def test_output_that_cannot_be_removed_is_reported(tmp_path: Path) -> None:
    stuck, gone = tmp_path / "stuck", tmp_path / "gone"
    stuck.mkdir()
    (stuck / "more").write_text("x")
    gone.write_text("x")

    async def story(files: OutputFiles, answers: Answers) -> None:
        files.remove(RemoveOutput([str(stuck), str(gone), str(tmp_path / "no")], 3))
        answer = await answers.get()
        assert (answer.number, answer.left) == (3, 1)
        assert str(stuck) in answer.reason

    play(tmp_path, story)
    assert stuck.exists()
    assert not gone.exists()


def test_a_watcher_may_be_told_to_stop_more_than_once(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("")

    async def story() -> None:
        watcher = FileWatcher()
        changed = asyncio.Event()
        watcher.add(str(path), changed.set)
        path.write_text("x")
        async with asyncio.timeout(PATIENCE_S):
            await changed.wait()
        watcher.remove(str(path))
        watcher.remove(str(path))
        watcher.close()
        watcher.close()

    asyncio.run(story())
