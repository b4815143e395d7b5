"""Signals as people write them, and the one that a job gets before its time limit.

A name is kept rather than a number wherever a signal is stored: numbers differ between
kinds of machines.
"""

import signal
from typing import NamedTuple

from grass.errors import UsageError
from grass.model.durations import seconds

LARGEST = 64
DEFAULT_BEFORE_S = 60.0
_INSTEAD = {"STOP": "grass suspend", "CONT": "grass continue"}


class LimitSignal(NamedTuple):
    """A signal that is sent so long before the time limit."""

    number: int
    before_s: float


def signal_number(text: str) -> int:
    """Read `INT`, `SIGINT` or `2`."""
    if text.isascii() and text.isdecimal() and len(text) <= len(str(LARGEST)):
        number = int(text)
    else:
        name = "SIG" + text.upper().removeprefix("SIG")
        found = getattr(signal, name, None)
        number = int(found) if isinstance(found, signal.Signals) else 0
    if not 0 < number <= LARGEST:
        raise UsageError(f"there is no signal `{text}`", "write TERM, INT, USR1 or 15")
    return number


def short_name(number: int) -> str:
    """Write a signal: `USR1`, or its number where it has no name."""
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return str(number)


def check_sendable(number: int) -> int:
    """Refuse what is no signal, and those that suspend a job behind grass's back."""
    name = short_name(signal_number(str(number)))
    if name in _INSTEAD:
        raise UsageError(
            f"SIG{name} would leave `grass show` wrong", f"use `{_INSTEAD[name]}`"
        )
    return number


def limit_signal(text: str) -> LimitSignal:
    """Read `USR1@60` or `USR1@5m`; without a time it is a minute."""
    name, at, before = text.partition("@")
    before_s = seconds(before) if at else DEFAULT_BEFORE_S
    if before_s <= 0:
        raise UsageError(
            f"--signal `{text}` comes no earlier than the time limit itself",
            "write USR1@60 for a minute before it",
        )
    return LimitSignal(check_sendable(signal_number(name)), before_s)


def written_limit_signal(text: str | None) -> str | None:
    """Check a signal before the time limit, and write it in one way."""
    if text is None:
        return None
    number, before_s = limit_signal(text)
    return f"{short_name(number)}@{_plain(before_s)}"


def _plain(number: float) -> str:
    """Write a number without an exponent, as it is read again."""
    return f"{number:.3f}".rstrip("0").rstrip(".")


def check_limit_signal(text: str | None, time_limit_s: float | None) -> None:
    """Refuse a signal that would never be sent."""
    if text is None:
        return
    if time_limit_s is None:
        raise UsageError(
            f"--signal {text} comes before a time limit, and there is none",
            "add --time-limit 2h",
        )
    before_s = limit_signal(text).before_s
    if before_s >= time_limit_s:
        raise UsageError(
            f"--signal {text} would come before the job starts: its time limit is"
            f" {_plain(time_limit_s)} s",
            "give a shorter time before the limit, as USR1@10s",
        )
