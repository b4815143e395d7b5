"""Spawning a job's program: directly or, where a disk may hang, by a forked child.

Directly, everything up to the spawn happens in the keeper itself. A forked child does
what may hang (directory, output, finding and running the program) and reports through a
pipe. Both give the program the same environment, umask and three descriptors, and both
say in one sentence why it could not start.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from grass.keeper.protocol import MARKER
from grass.keeper.runner_line import DESCRIPTOR
from grass.keeper.start_errors import (
    CannotStart,
    CannotStartNow,
    MissingHere,
    cause,
    is_of_disk,
    is_of_machine,
)
from grass.keeper.system.rlimits import OomScore

if TYPE_CHECKING:
    from grass.keeper.protocol import StartVerb
    from grass.keeper.system.rlimits import OpenFiles

_OPEN_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
_MISSING_HERE = (errno.ENOENT, errno.EACCES, errno.ENOEXEC)
"""Another machine may have the interpreter, the right, or the architecture."""
_EXEC_FAILURES = {
    errno.E2BIG: "the arguments and environment are longer than the kernel allows",
    errno.ENOEXEC: "`{}` is neither a program nor a script with a #! line",
    errno.ENOENT: "the interpreter of `{}` was not found",
    errno.EACCES: "`{}` may not be executed",
}


class WouldBlock(Exception):
    """Opening the output would block, as for a pipe without a reader."""


class StartReport(NamedTuple):
    """What a forked child reports; the last report counts."""

    offset: int = 0
    stderr_offset: int = 0
    error: str | None = None
    shortage: str | None = None
    """Why the machine cannot start programs now."""
    folder: str | None = None
    """Where no output could be created, if that is the cause."""
    missing: str = ""
    """The path of a `MissingHere`."""


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

    If a method raises, no process was started.
    """

    def __init__(self, files: OpenFiles) -> None:
        self._files = files
        self._oom_score = OomScore()
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._defaults = ignored_signals()

    def spawn(self, start: StartVerb, line: int | None = None) -> tuple[int, Outputs]:
        """Spawn the program directly and return its pid; `line` is for a runner."""
        umask = os.umask(output_umask(start))
        try:
            _enter(start.cwd)
            program = find_program(start)
            outputs = open_outputs(start, _OPEN_FLAGS)
            os.umask(start.umask)
            try:
                return self._run(start, program, outputs, line), outputs
            finally:
                close(outputs)
        finally:
            os.chdir("/")
            os.umask(umask)

    def _run(
        self, start: StartVerb, program: str, outputs: Outputs, line: int | None
    ) -> int:
        kept = () if line is None else ((os.POSIX_SPAWN_DUP2, line, DESCRIPTOR),)
        # Only now: the output was opened under the keeper's own limit.
        self._files.lower()
        self._oom_score.set_for_job()
        try:
            return os.posix_spawn(
                *executed(start, program),
                environment(start),
                file_actions=(
                    (os.POSIX_SPAWN_DUP2, self._null, 0),
                    (os.POSIX_SPAWN_DUP2, outputs.stdout, 1),
                    (os.POSIX_SPAWN_DUP2, outputs.stderr, 2),
                    *kept,
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

    def open_outputs(self, start: StartVerb) -> Outputs:
        """Open the output of a task that is handed to a runner."""
        umask = os.umask(output_umask(start))
        try:
            return open_outputs(start, _OPEN_FLAGS)
        finally:
            os.umask(umask)

    def fork(self, start: StartVerb, writer: int, line: int | None = None) -> int:
        """Fork a child that starts the program and reports to `writer`."""
        self._oom_score.set_for_job()
        try:
            pid = os.fork()
        finally:
            self._oom_score.set_own()
        if pid == 0:
            _become(start, _kept(writer, line), self._files)
        return pid


def report_pipe() -> tuple[int, int]:
    """Create a pipe for the reports of a forked child: reader and writer."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    return reader, writer


def _kept(writer: int, line: int | None) -> int:
    """Close all but these, and put a line in its place; return the writer.

    Above all the lock: a child that hangs must not hold it after the keeper died.
    """
    first = DESCRIPTOR
    if line is not None:
        if writer == DESCRIPTOR:
            writer = os.dup(writer)
        os.dup2(line, DESCRIPTOR)
        os.set_inheritable(DESCRIPTOR, True)
        first += 1
    os.closerange(first, writer)
    os.closerange(writer + 1, os.sysconf("SC_OPEN_MAX"))
    return writer


def _become(start: StartVerb, writer: int, files: OpenFiles) -> None:
    """Turn this forked child into the job; never returns."""
    try:
        files.lower()
        _reset_signals()
        os.setsid()
        os.umask(output_umask(start))
        _set_priority(start)
        _enter(start.cwd)
        program = find_program(start)
        outputs = open_outputs(start, _OPEN_FLAGS & ~os.O_NONBLOCK)
        os.umask(start.umask)
        null = os.open(os.devnull, os.O_RDWR)
        for source, target in ((null, 0), (outputs.stdout, 1), (outputs.stderr, 2)):
            os.dup2(source, target)
        _report(writer, StartReport(outputs.offset, outputs.stderr_offset))
        try:
            os.execve(*executed(start, program), environment(start))
        except (OSError, ValueError) as error:
            raise _exec_failure(error, program) from None
    except MissingHere as error:
        _report(writer, StartReport(error=str(error), missing=error.path))
    except CannotStart as error:
        _report(writer, StartReport(error=str(error)))
    except CannotStartNow as error:
        _report(writer, StartReport(shortage=str(error), folder=error.folder))
    except BaseException as error:  # noqa: BLE001 - a child must never return
        if isinstance(error, OSError) and is_of_machine(error):
            _report(writer, StartReport(shortage=cause(error)))
        else:
            _report(writer, StartReport(error=f"could not start: {error}"))
    finally:
        os._exit(127)


def _report(writer: int, report: StartReport) -> None:
    os.write(writer, json.dumps(report).encode() + b"\n")


def read_report(reader: int, received: bytearray) -> StartReport | None:
    """Read on; return the last report once the pipe has ended, None before that.

    A child that was killed before it reported has reported nothing to go by.
    """
    try:
        while chunk := os.read(reader, 65536):
            received += chunk
    except BlockingIOError:
        return None
    lines = received.splitlines()
    return StartReport(*json.loads(lines[-1])) if lines else StartReport()


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _set_priority(start: StartVerb) -> None:
    try:
        if start.nice:
            os.nice(start.nice)
        if start.cpus is not None:
            os.sched_setaffinity(0, start.cpus)
    except (OSError, ValueError) as error:
        wanted = f"priority {start.nice} and cores {start.cpus}"
        raise CannotStart(f"could not start: {wanted}: {cause(error)}") from None


def output_umask(start: StartVerb) -> int:
    """Return the job's umask, but with all rights for its own user.

    Output folders are shared with other jobs, and the daemon reads the file.
    """
    return start.umask & 0o077


def _enter(cwd: str) -> None:
    try:
        os.chdir(cwd)
    except (OSError, ValueError) as error:
        what = f"could not start: directory `{_shown(cwd)}`: {cause(error)}"
        raise MissingHere(what, cwd) from None


def open_outputs(start: StartVerb, flags: int) -> Outputs:
    """Open the job's output files, and create their directories."""
    own = os.path.dirname(start.output) if start.own_output else None
    stdout, offset = _open_output(start.output, flags, own)
    if start.stderr is None or start.stderr == start.output:
        return Outputs(stdout, stdout, offset, 0)
    try:
        stderr, stderr_offset = _open_output(start.stderr, flags, None)
    except BaseException:
        os.close(stdout)
        raise
    return Outputs(stdout, stderr, offset, stderr_offset)


def _open_output(path: str, flags: int, own: str | None) -> tuple[int, int]:
    """Open a file; an error of its disk fails the job, unless grass chose the folder.

    Otherwise one job that writes to a full disk would prevent all others from starting.
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


def close(outputs: Outputs) -> None:
    """Close the output in the keeper."""
    # Closing may report an error of the disk, but the job has its own descriptors.
    for descriptor in {outputs.stdout, outputs.stderr}:
        with suppress(OSError):
            os.close(descriptor)


def find_program(start: StartVerb) -> str:
    """Find argv[0], and the script that it reads; cwd must be set."""
    program = _program(start)
    if start.may_return and start.script and not os.path.exists(start.script):
        text = f"script `{_shown(start.script)}` not found in {_shown(start.cwd)}"
        raise MissingHere(f"could not start: {text}", start.script)
    return program


def _program(start: StartVerb) -> str:
    """Find argv[0] in the job's own PATH, then in its directory."""
    name = start.argv[0]
    if "/" in name:
        return _checked(name, start.cwd)
    candidates = [f"{directory}/{name}" for directory in search_path(start)]
    for program in candidates:
        if os.access(program, os.X_OK) and not _kind(program):
            return program
    for program in candidates:
        if _kind(program) == "refused":
            raise MissingHere(_not_executable(program), name)
    where = f"PATH or {_shown(start.cwd)}"
    text = f"could not start: program `{_shown(name)}` not found in {where}"
    raise MissingHere(text, name)


def executed(start: StartVerb, program: str) -> tuple[str, list[str]]:
    """Return what is executed for a program, and with which words."""
    if not start.under:
        return program, start.argv
    return start.under[0], [*start.under, program, *start.argv]


def environment(start: StartVerb) -> dict[str, str]:
    """Return the variables of a process; a runner is found by its first attempt."""
    return start.env if start.task is None else {**start.env, MARKER: start.id}


def search_path(start: StartVerb) -> list[str]:
    """Return where to look for a program, in order."""
    if "/" in start.argv[0]:
        return [os.path.dirname(start.argv[0])]
    path = start.env.get("PATH", os.defpath)
    return [*(directory or "." for directory in path.split(":")), "."]


def _checked(name: str, cwd: str) -> str:
    kind = _kind(name)
    if kind == "missing":
        where = "" if name.startswith("/") else f" in {_shown(cwd)}"
        text = f"could not start: program `{_shown(name)}` not found{where}"
        raise MissingHere(text, name)
    if kind == "refused":
        raise MissingHere(_not_executable(name), name)
    return name


def _not_executable(program: str) -> str:
    return f"could not start: `{_shown(program)}` is not executable"


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
    reason = "could not start: " + text.replace("{}", _shown(program))
    return (
        MissingHere(reason, program) if number in _MISSING_HERE else CannotStart(reason)
    )


def _shown(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
