"""What of a runner's process is set for each task, and put back after it.

Output, directory, umask, signal handlers, timers, the recursion limit and the garbage
collector are put back, variables before the next task. What cannot be, or would cost
the next task something, makes the process not clean: threads, children and descriptors
that are left, other limits, cores or priority, and much more memory.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import gc
import os
import resource
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from grass.keeper.runner_line import LineTask

GROWTH = 2
MORE_BYTES = 512 << 20
"""A runner leaves when it is larger than twice what it was at first, and this."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LIMITS = sorted(
    {which for name, which in vars(resource).items() if name[:7] == "RLIMIT_"}
)
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_UNMOVED = {signal.SIGKILL, signal.SIGSTOP}
_OPEN = "/proc/self/fd"
_PEAK = b"5"
"""Written to `clear_refs` it has the kernel measure the peak of memory anew."""


class ProcessState:
    """The process as it was at first, and what it has used before a task."""

    def __init__(self) -> None:
        self._variables: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]  # noqa: SLF001 -- comparing what is public takes longer than a task
        self._first_variables = dict(self._variables)
        self._last_variables = dict(self._variables)
        """Those that the last task was given, of which these are its own."""
        self._own: dict[str, str] = {}
        self._streams = sys.stdin, sys.stdout, sys.stderr
        numbers = [int(one) for one in signal.valid_signals() - _UNMOVED]
        self._numbers = [one for one in numbers if _signal.getsignal(one) is not None]
        self._handlers = [_signal.getsignal(one) for one in self._numbers]
        self._limits = -1
        with suppress(OSError):
            self._limits = os.open("/proc/self/limits", os.O_RDONLY | os.O_CLOEXEC)
        self._fixed = self._what_is_fixed()
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._memory = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._peak = -1
        with suppress(OSError):
            self._peak = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        self._most_bytes = GROWTH * self._bytes() + MORE_BYTES
        self._peak_bytes = 0
        self._used = 0.0, 0.0
        self._children = _used(resource.RUSAGE_CHILDREN)
        self._interpreter = _interpreter()
        # Last: all that is open from now on is a task's.
        self._open = os.open(_OPEN, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._descriptors = self._what_is_open()

    def enter(self, task: LineTask, outputs: list[int]) -> None:
        """Set what is of this task alone."""
        for target, source in zip((1, 2), outputs, strict=False):
            os.dup2(source, target)
            os.close(source)
        self._set_variables(task.env)
        os.umask(task.umask)
        with suppress(OSError):
            os.write(self._peak, _PEAK)
        self._used = _used(resource.RUSAGE_SELF)

    def flush(self) -> None:
        """Write out what Python has not written yet."""
        _, out, err = self._streams
        for stream in (out, err):
            _flush(stream)
        for stream in (sys.stdout, sys.stderr):
            if stream is not out and stream is not err:
                _flush(stream)

    def leave(self) -> tuple[float, float, int]:
        """Put all back; return the processor time of the task and its most memory."""
        self.flush()
        sys.stdin, sys.stdout, sys.stderr = self._streams
        used = self._used_by_task()
        try:
            for descriptor in (0, 1, 2):
                os.dup2(self._null, descriptor)
            os.chdir("/")
        except OSError:
            pass
        self._put_signals_back()
        self._put_interpreter_back()
        return *used, self._peak_bytes

    def _used_by_task(self) -> tuple[float, float]:
        """Return what the task has used, with the children that it has waited for."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        self._peak_bytes = own.ru_maxrss << 10
        (user_s, system_s), before = self._used, self._children
        # What they have used only grows in a task: a runner has no other children.
        self._children = now = _used(resource.RUSAGE_CHILDREN)
        user_s = own.ru_utime - user_s + now[0] - before[0]
        system_s = own.ru_stime - system_s + now[1] - before[1]
        return round(user_s, 6), round(system_s, 6)

    def _put_signals_back(self) -> None:
        for which in _TIMERS:
            _signal.setitimer(which, 0)
        # `signal` makes enumerations of all that it returns, which takes longer.
        if list(map(_signal.getsignal, self._numbers)) != self._handlers:
            for number, handler in zip(self._numbers, self._handlers, strict=True):
                if _signal.getsignal(number) is not handler:
                    _signal.signal(number, handler)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())

    def _set_variables(self, own: dict[str, str]) -> None:
        """Set the first variables and those of a task: most are those of the last."""
        if self._variables != self._last_variables:
            self._set_first_variables()
        last, self._own = self._own, own
        for name in last.keys() - own.keys():
            self._set_variable(name, self._first_variables.get(os.fsencode(name)))
        for name, value in own.items():
            if last.get(name) != value:
                self._set_variable(name, os.fsencode(value))

    def _set_first_variables(self) -> None:
        """Set those that the process had at first, after a task that changed some."""
        first, now = self._first_variables, self._variables
        for name in now.keys() - first.keys():
            del os.environb[name]
        for name, value in first.items() - now.items():
            os.environb[name] = value
        self._last_variables, self._own = dict(first), {}

    def _set_variable(self, name: str, value: bytes | None) -> None:
        key = os.fsencode(name)
        if value is None:
            del os.environb[key], self._last_variables[key]
        else:
            os.environb[key] = self._last_variables[key] = value

    def _put_interpreter_back(self) -> None:
        if _interpreter() != self._interpreter:
            recursion, is_collecting, thresholds = self._interpreter
            sys.setrecursionlimit(recursion)
            (gc.enable if is_collecting else gc.disable)()
            gc.set_threshold(*thresholds)

    def is_clean(self) -> bool:
        """Tell whether another task would find the process as the first one did."""
        return (
            not _thread._count()  # noqa: SLF001 -- `threading` counts only its own
            and not _has_children()
            and self._what_is_fixed() == self._fixed
            # What it has is no more than the most that it had.
            and (
                self._peak_bytes <= self._most_bytes
                or self._bytes() <= self._most_bytes
            )
            and not any(stream.closed for stream in self._streams)
            and self._has_first_descriptors()
        )

    def _has_first_descriptors(self) -> bool:
        """Tell whether the same are open as at first: a task's may hold a lock."""
        if self._what_is_open() != self._descriptors:
            # Python closes what nobody refers to any more, once it looks.
            gc.collect()
            return self._what_is_open() == self._descriptors
        return True

    def _what_is_open(self) -> tuple[int, int | list[str]]:
        """Return the lowest descriptor that is free, and how many are open.

        Newer kernels tell the number as the size of the folder; in older ones it is
        listed, which takes much longer. The list alone would not do: its own
        descriptor takes the place of one that is missing.
        """
        lowest_free = os.dup(self._open)
        os.close(lowest_free)
        return lowest_free, os.fstat(self._open).st_size or os.listdir(_OPEN)

    def _what_is_fixed(self) -> tuple[object, ...]:
        """Return what a task may change for good."""
        if self._limits >= 0:
            # One call in place of one for each limit.
            limits: object = os.pread(self._limits, 4096, 0)
        else:
            limits = list(map(resource.getrlimit, _LIMITS))
        return limits, os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)

    def _bytes(self) -> int:
        return int(os.pread(self._memory, 128, 0).split()[1]) * _PAGE


def _flush(stream: TextIO) -> None:
    with suppress(OSError, ValueError, AttributeError):
        stream.flush()


def _used(whose: int) -> tuple[float, float]:
    used = resource.getrusage(whose)
    return used.ru_utime, used.ru_stime


def _interpreter() -> tuple[int, bool, tuple[int, int, int]]:
    """Return what of Python itself is put back."""
    return sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold()


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
