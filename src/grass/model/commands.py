"""What a job runs: from the words a person typed to a program and its arguments.

Leading `NAME=value` words are environment. One word with spaces is a shell line, also
when it begins with assignments of its own.
After a queue with a prefix every word is an argument of that prefix, untouched.
"""

import re
from collections.abc import Sequence

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)

_SPACE = re.compile(r"\s")

Assignments = tuple[tuple[str, str], ...]


def is_shell_line(words: Sequence[str]) -> bool:
    """Tell whether a command is one word with spaces, after its assignments."""
    _, rest = split_assignments(words)
    return len(rest) == 1 and _SPACE.search(rest[0]) is not None


def split_assignments(words: Sequence[str]) -> tuple[Assignments, tuple[str, ...]]:
    """Take the leading `NAME=value` words off a command."""
    if words and "=" not in words[0]:
        return (), tuple(words)
    found: list[tuple[str, str]] = []
    for position, word in enumerate(words):
        match = _ASSIGNMENT.match(word)
        is_last = position == len(words) - 1
        if match is None or (is_last and _SPACE.search(word)):
            return tuple(found), tuple(words[position:])
        found.append((match.group(1), match.group(2)))
    return tuple(found), ()


def default_name(words: Sequence[str]) -> str:
    """Name a job after the base name of its program."""
    _, rest = split_assignments(words)
    if rest and _SPACE.search(rest[0].strip()):
        _, rest = split_assignments(rest[0].split())
    program = rest[0] if rest else "job"
    return program.rstrip("/").rpartition("/")[2][:64] or "job"


_UNSAFE = re.compile(r"[^A-Za-z0-9_.+=@-]+")


def safe_file_name(name: str) -> str:
    """Make a name fit to be one folder: no slashes, no hidden or special entries."""
    cleaned = _UNSAFE.sub("_", name)[:100]
    return cleaned if cleaned.strip(".") else "_" + cleaned.replace(".", "_")
