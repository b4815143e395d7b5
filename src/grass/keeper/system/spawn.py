"""Starting a job's program: the fast way and, where a disk may hang, the careful way.

Fast: everything up to the spawn happens in the keeper itself. Careful: a forked child
does what may hang (directory, output, looking up and running the program) and tells by
a pipe how far it came. Both give the program exactly the environment, umask and three
descriptors it should have, and both say in one sentence why it could not start.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from grass.keeper.core.events import Spec
from grass.keeper.system.rlimits import OomScore
from grass.keeper.system.shortage import (
    CannotStartNow,
    cause,
    is_of_disk,
    is_of_machine,
)

if TYPE_CHECKING:
    from grass.keeper.system.rlimits import OpenFiles

_OPEN_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
_EXEC_FAILURES = {
    errno.E2BIG: "the arguments and environment are longer than the kernel allows",
    errno.ENOEXEC: "`{}` is neither a program nor a script with a #! line",
    errno.ENOENT: "the interpreter of `{}` was not found",
    errno.EACCES: "`{}` may not be executed",
}


class CannotStart(Exception):
    """One sentence that names what stood in the way."""


class WouldBlock(Exception):
    """Opening the output would have to wait for somebody."""


class Outputs(NamedTuple):
    """The job's open output, and how long the files were before it wrote."""

    stdout: int
    stderr: int
    offset: int
    stderr_offset: int


def ignored_signals() -> list[int]:
    """Return the signals this process ignores, which jobs must not inherit."""
    every = sorted(signal.valid_signals())
    return [number for number in every if signal.getsignal(number) is signal.SIG_IGN]


class Spawner:
    """Starts programs; the caller must be single-threaded with `/` as directory.

    What raises has started nothing: once there is a process, its pid is returned.
    """

    def __init__(self, files: OpenFiles) -> None:
        self._files = files
        self._oom_score = OomScore()
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._defaults = ignored_signals()

    def spawn(self, spec: Spec) -> tuple[int, Outputs]:
        """Start the program the fast way and return its pid."""
        umask = os.umask(_kind_umask(spec))
        try:
            _enter(spec.cwd)
            outputs = open_outputs(spec, _OPEN_FLAGS)
            os.umask(spec.umask)
            try:
                return self._run(spec, find_program(spec), outputs), outputs
            finally:
                _close(outputs)
        finally:
            os.chdir("/")
            os.umask(umask)

    def _run(self, spec: Spec, program: str, outputs: Outputs) -> int:
        # Only now: the output was opened with what the keeper may have.
        self._files.lower()
        self._oom_score.set_for_job()
        try:
            return os.posix_spawn(
                program,
                spec.argv,
                spec.env,
                file_actions=(
                    (os.POSIX_SPAWN_DUP2, self._null, 0),
                    (os.POSIX_SPAWN_DUP2, outputs.stdout, 1),
                    (os.POSIX_SPAWN_DUP2, outputs.stderr, 2),
                ),
                setsid=True,
                setsigmask=(),
                setsigdef=self._defaults,
            )
        except (OSError, ValueError) as error:
            raise _exec_failure(error, program) from None
        finally:
            self._oom_score.set_own()
            self._files.raise_own()

    def fork(self, spec: Spec, writer: int) -> int:
        """Begin a careful start: return the pid of the child, which reports there."""
        self._oom_score.set_for_job()
        try:
            pid = os.fork()
        finally:
            self._oom_score.set_own()
        if pid == 0:
            _become(spec, writer, self._files)
        return pid


def report_pipe() -> tuple[int, int]:
    """Make a pipe for the reports of a careful start: reader and writer."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    return reader, writer


def _become(spec: Spec, writer: int, files: OpenFiles) -> None:
    """Turn this forked child into the job; never returns."""
    try:
        # Above all the lock: a child that hangs must not hold it for a dead keeper.
        os.closerange(3, writer)
        os.closerange(writer + 1, os.sysconf("SC_OPEN_MAX"))
        files.lower()
        _reset_signals()
        os.setsid()
        os.umask(_kind_umask(spec))
        _set_priority(spec)
        _enter(spec.cwd)
        outputs = open_outputs(spec, _OPEN_FLAGS & ~os.O_NONBLOCK)
        os.umask(spec.umask)
        program = find_program(spec)
        null = os.open(os.devnull, os.O_RDWR)
        for source, target in ((null, 0), (outputs.stdout, 1), (outputs.stderr, 2)):
            os.dup2(source, target)
        _tell(writer, {"offset": outputs.offset, "stderr": outputs.stderr_offset})
        try:
            os.execve(program, spec.argv, spec.env)
        except (OSError, ValueError) as error:
            raise _exec_failure(error, program) from None
    except CannotStart as error:
        _tell(writer, {"error": str(error)})
    except CannotStartNow as error:
        _tell(writer, {"now": str(error), "folder": error.folder})
    except BaseException as error:  # noqa: BLE001 - a child must never return
        if isinstance(error, OSError) and is_of_machine(error):
            _tell(writer, {"now": cause(error), "folder": None})
        else:
            _tell(writer, {"error": f"could not start: {error}"})
    finally:
        os._exit(127)


def _tell(writer: int, report: dict[str, object]) -> None:
    os.write(writer, json.dumps(report).encode() + b"\n")


def read_reports(reader: int) -> tuple[dict[str, object], bool]:
    """Read what a careful start reported, merged, and whether the pipe has ended."""
    text = b""
    merged: dict[str, object] = {}
    ended = False
    try:
        while chunk := os.read(reader, 65536):
            text += chunk
        ended = True
    except BlockingIOError:
        pass
    for line in text.splitlines():
        merged.update(json.loads(line))
    return merged, ended


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _set_priority(spec: Spec) -> None:
    try:
        if spec.nice:
            os.nice(spec.nice)
        if spec.cpus is not None:
            os.sched_setaffinity(0, spec.cpus)
    except (OSError, ValueError) as error:
        wanted = f"priority {spec.nice} and cores {spec.cpus}"
        raise CannotStart(f"could not start: {wanted}: {cause(error)}") from None


def _kind_umask(spec: Spec) -> int:
    """Return the job's umask without what would lock its own user out.

    Folders of output are shared with other jobs, and the file is read by the daemon.
    """
    return spec.umask & 0o077


def _enter(cwd: str) -> None:
    try:
        os.chdir(cwd)
    except (OSError, ValueError) as error:
        what = f"directory `{_shown(cwd)}`"
        raise CannotStart(f"could not start: {what}: {cause(error)}") from None


def open_outputs(spec: Spec, flags: int) -> Outputs:
    """Open the job's output files, making their directories where missing."""
    own = os.path.dirname(spec.output) if spec.own_output else None
    stdout, offset = _open_output(spec.output, flags, own)
    if spec.stderr is None or spec.stderr == spec.output:
        return Outputs(stdout, stdout, offset, 0)
    try:
        stderr, stderr_offset = _open_output(spec.stderr, flags, None)
    except BaseException:
        os.close(stdout)
        raise
    return Outputs(stdout, stderr, offset, stderr_offset)


def _open_output(path: str, flags: int, own: str | None) -> tuple[int, int]:
    """Open a file; a disk's trouble is the job's own, unless grass chose the folder.

    Otherwise one job that writes to a full disk would keep all others from starting.
    """
    try:
        try:
            descriptor = os.open(path, flags, 0o666)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(path, flags, 0o666)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            raise WouldBlock from None
        if isinstance(error, OSError) and is_of_machine(error):
            raise CannotStartNow(error) from None
        if isinstance(error, OSError) and own and is_of_disk(error):
            raise CannotStartNow(error, own) from None
        what = f"output `{_shown(path)}`"
        raise CannotStart(f"could not start: {what}: {cause(error)}") from None
    if flags & os.O_NONBLOCK:
        os.set_blocking(descriptor, True)
    return descriptor, os.fstat(descriptor).st_size


def _close(outputs: Outputs) -> None:
    # A disk may complain when a file is closed, but the job has its own by now.
    for descriptor in {outputs.stdout, outputs.stderr}:
        with suppress(OSError):
            os.close(descriptor)


def find_program(spec: Spec) -> str:
    """Find argv[0] in the job's own PATH, then in its directory; cwd must be set."""
    name = spec.argv[0]
    if "/" in name:
        return _checked(name, spec.cwd)
    candidates = [f"{directory}/{name}" for directory in search_path(spec)]
    for program in candidates:
        if os.access(program, os.X_OK) and not _kind(program):
            return program
    for program in candidates:
        if _kind(program) == "refused":
            raise CannotStart(f"could not start: `{_shown(program)}` is not executable")
    where = f"PATH or {_shown(spec.cwd)}"
    raise CannotStart(f"could not start: program `{_shown(name)}` not found in {where}")


def search_path(spec: Spec) -> list[str]:
    """Return where to look for a program, in order."""
    if "/" in spec.argv[0]:
        return [os.path.dirname(spec.argv[0])]
    path = spec.env.get("PATH", os.defpath)
    return [*(directory or "." for directory in path.split(":")), "."]


def _checked(name: str, cwd: str) -> str:
    kind = _kind(name)
    if kind == "missing":
        where = "" if name.startswith("/") else f" in {_shown(cwd)}"
        raise CannotStart(f"could not start: program `{_shown(name)}` not found{where}")
    if kind == "refused":
        raise CannotStart(f"could not start: `{_shown(name)}` is not executable")
    return name


def _kind(program: str) -> str:
    """Return nothing for a program that can run, else `missing` or `refused`."""
    try:
        mode = os.stat(program).st_mode
    except (OSError, ValueError):
        return "missing"
    if stat.S_ISREG(mode) and os.access(program, os.X_OK):
        return ""
    return "refused"


def _exec_failure(error: OSError | ValueError, program: str) -> Exception:
    if isinstance(error, OSError) and is_of_machine(error):
        return CannotStartNow(error)
    number = error.errno if isinstance(error, OSError) else None
    text = _EXEC_FAILURES.get(number or 0)
    if text is None:
        text = f"`{{}}`: {cause(error)}"
    return CannotStart("could not start: " + text.replace("{}", _shown(program)))


def _shown(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
