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
    from grass.keeper.runner_line import LineTask

GROWTH = 2
MORE_BYTES = 512 << 20
"""A runner leaves when it is larger than twice what it was at first, and this."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LIMITS = [which for name, which in vars(resource).items() if name[:7] == "RLIMIT_"]
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
        self._streams = sys.stdin, sys.stdout, sys.stderr
        numbers = [int(one) for one in signal.valid_signals() - _UNMOVED]
        handlers = [(one, _signal.getsignal(one)) for one in numbers]
        self._handlers = [pair for pair in handlers if pair[1] is not None]
        self._fixed = _fixed()
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._memory = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._peak = -1
        with suppress(OSError):
            self._peak = os.open("/proc/self/clear_refs", os.O_WRONLY | os.O_CLOEXEC)
        self._most_pages = GROWTH * self._pages() + MORE_BYTES // _PAGE
        self._used = 0.0, 0.0
        self._interpreter = _interpreter()
        # Last: all that is open from now on is a task's.
        self._descriptors = os.listdir(_OPEN)

    def enter(self, task: LineTask, outputs: list[int]) -> None:
        """Set what is of this task alone."""
        for target, source in zip((1, 2), outputs, strict=False):
            os.dup2(source, target)
            os.close(source)
        self._set_variables(task.env)
        os.umask(task.umask)
        with suppress(OSError):
            os.write(self._peak, _PEAK)
        self._used = _used()

    def flush(self) -> None:
        """Write out what Python has not written yet."""
        for stream in {sys.stdout, sys.stderr, *self._streams[1:]}:
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()

    def leave(self) -> tuple[float, float, int]:
        """Put all back; return the processor time of the task and its most memory."""
        self.flush()
        sys.stdin, sys.stdout, sys.stderr = self._streams
        user_s, system_s = _used()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        with suppress(OSError):
            for descriptor in (0, 1, 2):
                os.dup2(self._null, descriptor)
            os.chdir("/")
        self._put_signals_back()
        self._put_interpreter_back()
        before = self._used
        return round(user_s - before[0], 6), round(system_s - before[1], 6), peak

    def _put_signals_back(self) -> None:
        for which in _TIMERS:
            signal.setitimer(which, 0)
        for number, handler in self._handlers:
            # `signal` makes enumerations of all that it returns.
            if _signal.getsignal(number) is not handler:
                _signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    def _set_variables(self, own: dict[str, str]) -> None:
        """Set the first variables and those of a task: most are those of the last."""
        wanted, now = dict(self._first_variables), self._variables
        wanted.update((os.fsencode(name), os.fsencode(own[name])) for name in own)
        for name in now.keys() - wanted.keys():
            del os.environb[name]
        for name, value in wanted.items():
            if now.get(name) != value:
                os.environb[name] = value

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
            and _fixed() == self._fixed
            and self._pages() <= self._most_pages
            and not any(stream.closed for stream in self._streams)
            and self._has_first_descriptors()
        )

    def _has_first_descriptors(self) -> bool:
        """Tell whether the same are open as at first: a task's may hold a lock."""
        if os.listdir(_OPEN) != self._descriptors:
            # Python closes what nobody refers to any more, once it looks.
            gc.collect()
            return os.listdir(_OPEN) == self._descriptors
        return True

    def _pages(self) -> int:
        return int(os.pread(self._memory, 128, 0).split()[1])


def _used() -> tuple[float, float]:
    own = resource.getrusage(resource.RUSAGE_SELF)
    waited_for = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + waited_for.ru_utime, own.ru_stime + waited_for.ru_stime


def _fixed() -> tuple[object, ...]:
    """Return what a task may change for good."""
    limits = tuple(resource.getrlimit(which) for which in _LIMITS)
    return limits, os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)


def _interpreter() -> tuple[int, bool, tuple[int, int, int]]:
    """Return what of Python itself is put back."""
    return sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold()


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
