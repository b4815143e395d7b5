"""Output files of tasks that have no name until something is written.

To make a file takes longer than a short task runs, and most tasks write nothing. So a
runner has a file without a name (`O_TMPFILE`), which one attempt after another writes
to. It gets the name of an attempt's output when that has written something and ends, or
is not young any more; then the runner gets another one for its next attempt. An attempt
that wrote nothing has no file.

Where the file system has no such files, or the keeper may not open one, output is
opened by its name.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper.process_table import start_ticks
from grass.keeper.system import log
from grass.keeper.system.spawn import Outputs, output_umask

if TYPE_CHECKING:
    from grass.keeper.protocol import StartVerb

_FLAGS = os.O_TMPFILE | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
_MODE = 0o666
_UNFINISHED = ".part"


class UnnamedFile:
    """A file that may get the name of an attempt's output."""

    __slots__ = ("descriptor", "folder", "path", "umask")

    def __init__(self, descriptor: int, folder: str, umask: int) -> None:
        self.descriptor = descriptor
        self.folder = folder
        self.umask = umask
        self.path = ""
        """What it is to be called if the present attempt writes."""

    @property
    def size(self) -> int:
        """How much was written."""
        return os.fstat(self.descriptor).st_size

    def fits(self, folder: str, umask: int) -> bool:
        """Tell whether it could be a file of this folder."""
        return folder == self.folder and umask == self.umask


class UnnamedOutputs:
    """The file without a name that each runner has, and who writes to it now."""

    def __init__(self) -> None:
        self._of_runner: dict[int, UnnamedFile] = {}
        self._of_attempt: dict[str, tuple[int, UnnamedFile]] = {}
        self._ended_runners: set[int] = set()
        """Those that have ended before their last attempt is over."""
        self._possible = True

    def take(self, start: StartVerb, runner: int) -> Outputs | None:
        """Return the output of an attempt that a runner is to be handed.

        None: its output must be opened by its name.
        """
        if not self._possible or not start.own_output or start.stderr is not None:
            return None
        folder, umask = os.path.dirname(start.output), output_umask(start)
        file = self._of_runner.get(runner)
        if file is None or not file.fits(folder, umask):
            self.runner_ended(runner)
            file = self._new(folder, umask)
            if file is None:
                return None
            self._of_runner[runner] = file
        file.path = start.output
        self._of_attempt[start.id] = runner, file
        return Outputs(file.descriptor, file.descriptor, 0, 0)

    def _new(self, folder: str, umask: int) -> UnnamedFile | None:
        before = os.umask(umask)
        try:
            return UnnamedFile(os.open(folder, _FLAGS, _MODE), folder, umask)
        except FileNotFoundError:
            # The first attempt of a folder makes it, with its own file.
            return None
        except OSError as error:
            self._possible = error.errno not in (errno.EOPNOTSUPP, errno.EISDIR)
            return None
        finally:
            os.umask(before)

    def has(self, id: str) -> bool:
        """Tell whether an attempt writes to a file without a name."""
        return id in self._of_attempt

    def written(self, id: str) -> int | None:
        """Return how much an attempt wrote; None: its file has a name."""
        found = self._of_attempt.get(id)
        return None if found is None else found[1].size

    def name(self, id: str) -> None:
        """Give the file that an attempt writes to its name."""
        runner, file = self._of_attempt.pop(id, (0, None))
        if file is not None:
            del self._of_runner[runner]
            self._ended_runners.discard(runner)
            try:
                give_name(f"/proc/self/fd/{file.descriptor}", file.path)
            except OSError as error:
                log.write("error", "output.unnamed", path=file.path, error=error)
            finally:
                os.close(file.descriptor)

    def ended(self, id: str, written: int | None) -> None:
        """Note that an attempt is over: if it has written, that gets its name."""
        if written:
            self.name(id)
            return
        runner, _ = self._of_attempt.pop(id, (0, None))
        if runner in self._ended_runners:
            self.runner_ended(runner)

    def runner_ended(self, runner: int) -> None:
        """Close the file of a runner, once its attempt is over."""
        file = self._of_runner.get(runner)
        self._ended_runners.discard(runner)
        if file is None:
            return
        if any(one[0] == runner for one in self._of_attempt.values()):
            self._ended_runners.add(runner)
        else:
            del self._of_runner[runner]
            os.close(file.descriptor)


def name_left_output(pid: int, ticks: int, path: str) -> None:
    """Name the output of a process that a dead keeper left, if it has no name."""
    descriptor = f"/proc/{pid}/fd/1"
    with suppress(OSError):
        if start_ticks(pid) == ticks and os.stat(descriptor).st_nlink == 0:
            give_name(descriptor, path)


def give_name(descriptor: str, path: str) -> None:
    """Link a file without a name; raises OSError."""
    try:
        _link(descriptor, path)
    except FileNotFoundError:
        # Empty folders are removed with the output of jobs that are forgotten.
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _link(descriptor, path)
    except FileExistsError:
        # Of a start that was recalled, and had written nothing.
        _link(descriptor, path + _UNFINISHED)
        os.rename(path + _UNFINISHED, path)


def _link(descriptor: str, path: str) -> None:
    # Without a folder, which an absolute path does not need, Python calls `link`: that
    # links the symbolic link in /proc and not the file.
    os.link(descriptor, path, src_dir_fd=0, follow_symlinks=True)
