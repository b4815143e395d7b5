"""Arrays: one command, many indices.

`1-100`, `0-90:10` (every tenth), `1,4,7-9`, and with `%8` at the end at most 8 of them
at a time. Members are jobs like any other, with consecutive ids.
"""

import re
from typing import NamedTuple

from grass.errors import UsageError

MOST_MEMBERS = 100_000
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?\Z")
_CAP = re.compile(r"\d{1,9}\Z")


class Array(NamedTuple):
    """The members' indices, and how many may run at a time."""

    indices: list[int]
    at_most: int | None = None
    step: int = 1
    """The first step that was written; the one that Slurm reports of an array."""


def read_array(text: str) -> Array:
    """Parse an array."""
    members, percent, cap = text.partition("%")
    if percent and (not _CAP.match(cap) or int(cap) < 1):
        raise UsageError(f"--array `{text}`: after % comes a number", "write 1-100%8")
    indices: dict[int, None] = {}
    listed = 0
    for part in members.split(","):
        found = _range(part.strip(), text)
        # Repeated indices count each time, which bounds the work for a short text.
        listed += len(found)
        if listed > MOST_MEMBERS:
            raise _too_large(text)
        indices.update(dict.fromkeys(found))
    _, _, stepped = members.partition(":")
    step = int(stepped.partition(",")[0]) if stepped else 1
    return Array(list(indices), int(cap) if percent else None, step)


def limiter(array: int) -> str:
    """Return the name of the limiter of an array's cap."""
    return f"array:{array}"


def _range(part: str, text: str) -> range:
    found = _RANGE.match(part)
    if found is None:
        raise UsageError(
            f"--array `{text}` is not understood", "write 1-100, 0-90:10 or 1-100%8"
        )
    first = int(found.group(1))
    last = int(found.group(2) or first)
    step = int(found.group(3) or 1)
    if last < first or step < 1:
        raise UsageError(f"--array `{text}` has no members", "write 1-100")
    if (last - first) // step >= MOST_MEMBERS:
        raise _too_large(text)
    return range(first, last + 1, step)


def _too_large(text: str) -> UsageError:
    return UsageError(f"--array `{text}`: at most {MOST_MEMBERS:,} members")
