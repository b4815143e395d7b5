"""Output files on this machine: read in chunks, followed, scanned, removed.

Files may be on a network disk that hangs, so they are read in threads, never on the
event loop. Only files in the worker's own output folder are removed; with an output
goes the history of what its attempt used.
"""

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from grass.keeper.crash_points import crash_point
from grass.link.messages import (
    CloseOutput,
    OutputData,
    ReadOutput,
    Removed,
    RemoveOutput,
)
from grass.link.requests import ScannedLines
from grass.model.jobs.task_call import result_path
from grass.model.usage.attempt_usage import usage_path
from grass.store.blob_folder import read_from_memory
from grass.worker.shell.inotify import FileWatcher
from grass.worker.shell.line_scans import scan_lines
from grass.worker.shell.output_ends import CreateTask

T = TypeVar("T")

LARGEST_CHUNK = 1 << 20
RESULT = ".result"
UNNAMED_S = 0.2
"""The keeper gives the output of a task its name sooner than this."""
THREADS = 8
"""A file on a disk that hangs blocks one of them."""
SCANS = 2
"""Scans have threads of their own: they take longer than a chunk."""
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class OutputFiles:
    """Answers the broker's requests about files."""

    def __init__(
        self,
        folder: str,
        answer: Callable[[OutputData | Removed], None],
        begin: CreateTask,
    ) -> None:
        """`folder` is where output goes unless a job says otherwise."""
        self._begin = begin
        self._folder = Path(folder)
        self._answer = answer
        self._threads = _started_threads()
        self._scans = ThreadPoolExecutor(SCANS, thread_name_prefix="scan")
        self._watcher = FileWatcher()
        self._waiting: dict[int, ReadOutput] = {}

    def read(self, request: ReadOutput) -> None:
        """Answer with a chunk, now or when there is one, or with what a scan found."""
        if request.scan is not None:
            self._begin(self._scan(request))
            return
        if request.files:
            self._begin(self._read_files(request))
            return
        if request.wait:
            self._waiting[request.stream] = request
            self._watch(request.path)
        self._begin(self._read(request))

    def close_stream(self, request: CloseOutput) -> None:
        """Stop waiting for more output."""
        self._stop_waiting(request.stream)

    def remove(self, request: RemoveOutput) -> None:
        """Delete output of pruned attempts, and report when it is gone."""
        self._begin(self._remove(request))

    def close(self) -> None:
        """Stop answering."""
        self._watcher.close()
        for pool in (self._threads, self._scans):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _scan(self, request: ReadOutput) -> None:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._scans, _scanned, request)
        if found is None and await self._may_have_file_now(request):
            found = await loop.run_in_executor(self._scans, _scanned, request)
        self._answer(OutputData(request.stream, b"", found is None, found))

    async def _read_files(self, request: ReadOutput) -> None:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _whole_files, request)
        self._answer(OutputData(request.stream, b"", files=found))

    async def _read(self, request: ReadOutput) -> None:
        data = self._result_piece(request)
        if data is None:
            loop = asyncio.get_running_loop()
            data = await loop.run_in_executor(self._threads, _chunk, request)
            if data is None and await self._may_have_file_now(request):
                if request.wait:
                    self._watch(request.path)
                data = await loop.run_in_executor(self._threads, _chunk, request)
        if data is None:
            self._stop_waiting(request.stream)
            self._answer(OutputData(request.stream, b"", missing=True))
        elif data or not request.wait:
            if request.wait and request.stream not in self._waiting:
                return
            self._stop_waiting(request.stream)
            self._answer(OutputData(request.stream, data))

    def _result_piece(self, request: ReadOutput) -> bytes | None:
        """Read a piece of a result that is still in memory, without a thread.

        Results are in the worker's own folder, on a local disk.
        """
        if not request.path.endswith(RESULT) or ".." in request.path:
            return None
        if not request.path.startswith(f"{self._folder}/"):
            return None
        length = min(request.length, LARGEST_CHUNK)
        return read_from_memory(request.path, request.offset, length)

    async def _may_have_file_now(self, request: ReadOutput) -> bool:
        """Wait for as long as the output of a task that has begun may have no file."""
        if not request.path.startswith(f"{self._folder}/"):
            return False
        await asyncio.sleep(UNNAMED_S)
        return True

    def _watch(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._watcher.add(path, lambda: self._changed(path))

    def _changed(self, path: str) -> None:
        for request in list(self._waiting.values()):
            if request.path == path:
                self._begin(self._read(request))

    def _stop_waiting(self, stream: int) -> None:
        request = self._waiting.pop(stream, None)
        if request is None:
            return
        if all(other.path != request.path for other in self._waiting.values()):
            self._watcher.remove(request.path)

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
                for beside in (usage_path(str(path)), result_path(str(path))):
                    if beside is not None:
                        Path(beside).unlink(missing_ok=True)
            except (OSError, ValueError) as error:
                answer.left += 1
                answer.reason = str(error)
            else:
                folders.add(path.parent)
        self._remove_empty(folders)
        return answer

    def _remove_empty(self, folders: set[Path]) -> None:
        """Remove folders that are empty now, and then those above them.

        Each is tried once: it takes long to find that a large folder is not empty.
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
    """Start all threads now: later the machine may be short of processes."""
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="output")
    together = threading.Barrier(THREADS)
    try:
        for _ in range(THREADS):
            pool.submit(together.wait)
    except RuntimeError:
        together.abort()
        raise
    return pool


def _chunk(request: ReadOutput) -> bytes | None:
    length = min(request.length, LARGEST_CHUNK)
    return _of_file(request, lambda file: os.pread(file, length, request.offset), b"")


def _whole_files(request: ReadOutput) -> list[bytes | None]:
    """Read small files; None for one that is missing or larger."""
    most = min(request.length, LARGEST_CHUNK)
    found = []
    for path in request.files:
        data = _chunk(ReadOutput(0, path, 0, most + 1))
        found.append(None if data is None or len(data) > most else data)
    return found


def _scanned(request: ReadOutput) -> ScannedLines | None:
    wanted = request.scan
    assert wanted is not None
    nothing = ScannedLines(request.offset, 0)
    return _of_file(
        request, lambda file: scan_lines(file, request.offset, wanted), nothing
    )


def _of_file(request: ReadOutput, read: Callable[[int], T], nothing: T) -> T | None:
    """Read from a file; None: it is missing."""
    try:
        # A pipe or a device is not opened: that may block, or have an effect.
        if not stat.S_ISREG(os.stat(request.path).st_mode):
            return nothing
        descriptor = os.open(request.path, _READING)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return nothing
        return read(descriptor)
    except (OSError, ValueError):
        # The second is a pattern that this version of RE2 does not take.
        return nothing
    finally:
        os.close(descriptor)
