"""The signs of a terminal: of states, in bars, at the end of a line that was cut.

A terminal whose encoding or locale has ASCII only gets signs of ASCII. A pipe gets
none: programs read the words.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO


class Signs:
    """One set of signs."""

    def __init__(
        self, states: Mapping[str, str], bar: str, ellipsis: str, branch: str
    ) -> None:
        """`bar` has the letters of a full, a half and an empty cell."""
        self._states = states
        self.full, self.half, self.empty = tuple(bar)
        self.ellipsis = ellipsis
        self.branch = branch

    def of(self, state: str) -> str:
        """Return the sign of a state or flag and a space, or nothing."""
        # Of several words, the first one tells.
        sign = self._states.get(state.partition(",")[0])
        return f"{sign} " if sign else ""

    def bar(self, share: float, width: int) -> tuple[str, str]:
        """Return the filled and the empty part of a bar; a little is never nothing."""
        halves = min(2 * width, max(0, round(2 * width * share)))
        if share > 0:
            halves = max(1, halves)
        if share < 1:
            halves = min(2 * width - 1, halves)
        whole, half = divmod(halves, 2)
        filled = self.full * whole + self.half * half
        return filled, self.empty * (width - len(filled))


UNICODE = Signs(
    {
        "running": "●",
        "unreachable": "●",
        "stopping": "●",
        "suspended": "‖",
        "queued": "○",
        "waiting": "◌",
        "held": "‖",
        "succeeded": "✓",
        "failed": "✗",
        "cancelled": "⊘",
        "lost": "?",
        "ok": "✓",
        "note": "!",
        "wrong": "✗",
    },
    "█▌░",
    "…",
    "└ ",
)
ASCII = Signs(
    {
        "running": "*",
        "unreachable": "*",
        "stopping": "*",
        "suspended": "=",
        "queued": "o",
        "waiting": ".",
        "held": "=",
        "succeeded": "+",
        "failed": "x",
        "cancelled": "-",
        "lost": "?",
        "ok": "+",
        "note": "!",
        "wrong": "x",
    },
    "#=.",
    "...",
    "` ",
)
NONE = Signs({}, "#=.", "...", "")


def signs_of_terminal(stream: TextIO | None = None) -> Signs:
    """Return the signs that the terminal can show which a stream is; else stdout."""
    try:
        "●▌…".encode((stream or sys.stdout).encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    plain = _locale() in ("C", "POSIX") or os.environ.get("TERM") == "dumb"
    return ASCII if plain else UNICODE


def _locale() -> str:
    """Return the locale that was asked for.

    Python itself sets LC_CTYPE where LANG is C; to set nothing at all, as containers
    do, says nothing about the terminal.
    """
    told = os.environ
    coerced = ("C.UTF-8", "C.utf8", "UTF-8")
    if told.get("LC_ALL"):
        return told["LC_ALL"]
    chosen = told.get("LC_CTYPE", "")
    return told.get("LANG", "") if chosen in ("", *coerced) else chosen
