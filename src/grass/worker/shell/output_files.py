"""Output files on this machine: read in pieces, waited for, removed.

Files may lie on a network disk that hangs, so they are read in a thread of their own
and never on the event loop. Removing is limited to the worker's own output folder.
"""

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from grass.keeper.crash_points import crash_point
from grass.link.messages import (
    CloseOutput,
    OutputData,
    ReadOutput,
    Removed,
    RemoveOutput,
)
from grass.worker.shell.inotify import FileWatcher

LARGEST_PIECE = 1 << 20
THREADS = 8
"""A file on a disk that hangs keeps one of them busy."""
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

Begin = Callable[[Coroutine[Any, Any, None]], object]
"""Starts a task that somebody waits for: a task group's `create_task`."""


class OutputFiles:
    """Answers the broker's questions about files."""

    def __init__(
        self,
        folder: str,
        answer: Callable[[OutputData | Removed], None],
        begin: Begin,
    ) -> None:
        """`folder` is where output goes unless a job says otherwise."""
        self._begin = begin
        self._folder = Path(folder)
        self._answer = answer
        self._threads = _started_threads()
        self._watcher = FileWatcher()
        self._waiting: dict[int, ReadOutput] = {}

    def read(self, question: ReadOutput) -> None:
        """Answer with a piece, at once or when there is one."""
        if question.wait:
            self._waiting[question.stream] = question
            self._watch(question.path)
        self._begin(self._read(question))

    def close_stream(self, question: CloseOutput) -> None:
        """Nobody waits for this any more."""
        self._settle(question.stream)

    def remove(self, request: RemoveOutput) -> None:
        """Delete output of pruned attempts, and say when it is gone."""
        self._begin(self._remove(request))

    def close(self) -> None:
        """Stop answering."""
        self._watcher.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _read(self, question: ReadOutput) -> None:
        loop = asyncio.get_running_loop()
        data = await loop.run_in_executor(self._threads, _piece, question)
        if data is None:
            self._settle(question.stream)
            self._answer(OutputData(question.stream, b"", missing=True))
        elif data or not question.wait:
            if question.wait and question.stream not in self._waiting:
                return
            self._settle(question.stream)
            self._answer(OutputData(question.stream, data))

    def _watch(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._watcher.add(path, lambda: self._changed(path))

    def _changed(self, path: str) -> None:
        for question in list(self._waiting.values()):
            if question.path == path:
                self._begin(self._read(question))

    def _settle(self, stream: int) -> None:
        question = self._waiting.pop(stream, None)
        if question is None:
            return
        if all(other.path != question.path for other in self._waiting.values()):
            self._watcher.remove(question.path)

    async def _remove(self, request: RemoveOutput) -> None:
        loop = asyncio.get_running_loop()
        gone = await loop.run_in_executor(self._threads, self._removed, request)
        self._answer(gone)

    def _removed(self, request: RemoveOutput) -> Removed:
        answer, folders = Removed(request.number), set[Path]()
        for path in map(Path, request.paths):
            crash_point("worker.before-remove")
            if not path.is_relative_to(self._folder) or ".." in path.parts:
                continue
            try:
                path.unlink(missing_ok=True)
            except (OSError, ValueError) as error:
                answer.left += 1
                answer.reason = str(error)
            else:
                folders.add(path.parent)
        self._remove_empty(folders)
        return answer

    def _remove_empty(self, folders: set[Path]) -> None:
        """Remove folders that are empty now, and then those above them.

        Each is tried once: to find that a folder of thousands is not empty takes long.
        """
        while folders := folders - {self._folder}:
            above = set[Path]()
            for folder in folders:
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    """It was removed before a daemon was killed."""
                except OSError:
                    continue
                above.add(folder.parent)
            folders = above


def _started_threads() -> ThreadPoolExecutor:
    """Make all threads now: a machine that is short of processes gives none later."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="output")
    together = threading.Barrier(THREADS)
    try:
        for _ in range(THREADS):
            pool.submit(together.wait)
    except RuntimeError:
        together.abort()
        raise
    return pool


def _piece(question: ReadOutput) -> bytes | None:
    try:
        # A pipe or a device is not even opened: that may wait, or do something.
        if not stat.S_ISREG(os.stat(question.path).st_mode):
            return b""
        descriptor = os.open(question.path, _READING)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        length = min(question.length, LARGEST_PIECE)
        return os.pread(descriptor, length, question.offset)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
