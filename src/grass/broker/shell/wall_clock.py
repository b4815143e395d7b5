"""Waking up at a time of the wall clock.

A job that begins at 22:00 does so when clocks say 22:00: also after the machine slept,
and after the clock was set. The event loop's own timers count neither. Linux has
what is needed, a timer on the real-time clock that also tells when that clock jumps;
Python has it from 3.13 on, so it is asked for by name. Nothing is made before it is
needed, and without a time to wait for nothing ever wakes.
"""

import asyncio
import ctypes
import os
import time
from collections.abc import Callable
from contextlib import suppress

_CLOCK_REALTIME = 0
_ABSOLUTE_AND_TELL_OF_JUMPS = 3
_US = 1_000_000


class _Moment(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


class _Setting(ctypes.Structure):
    _fields_ = [("interval", _Moment), ("at", _Moment)]


class WallClock:
    """One timer that calls back when a time has come, or when the clock jumped."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._at: int | None = None
        self._timer: int | None = None
        self._libc: ctypes.CDLL | None = None

    def set(self, at_us: int | None) -> None:
        """Call back at this time, in place of the one before; None: never."""
        if at_us == self._at:
            return
        self._at = at_us
        if self._timer is None:
            if at_us is None:
                return
            self._make_timer()
        self._arm(at_us)

    def close(self) -> None:
        """Close the timer."""
        if self._timer is not None:
            with suppress(RuntimeError):
                asyncio.get_running_loop().remove_reader(self._timer)
            os.close(self._timer)
            self._timer = None

    def _make_timer(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        timer = self._libc.timerfd_create(_CLOCK_REALTIME, flags)
        if timer < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._timer = timer
        asyncio.get_running_loop().add_reader(self._timer, self._rang)

    def _arm(self, at_us: int | None) -> None:
        assert self._libc is not None
        # A time of zero would disarm the timer; one that has passed rings at once.
        wanted = 0 if at_us is None else max(1, at_us)
        moment = _Moment(wanted // _US, wanted % _US * 1000)
        setting = _Setting(_Moment(0, 0), moment)
        self._libc.timerfd_settime(
            self._timer, _ABSOLUTE_AND_TELL_OF_JUMPS, ctypes.byref(setting), None
        )

    def _rang(self) -> None:
        assert self._timer is not None
        # A jump of the clock is told as an error; either way: look again.
        with suppress(OSError):
            os.read(self._timer, 8)
        if self._at is not None and self._at > time.time_ns() // 1000:
            self._arm(self._at)
        else:
            self._at = None
        self._ring()
