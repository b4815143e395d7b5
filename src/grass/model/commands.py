"""What a job runs: from the words a person typed to a program and its arguments.

Leading `NAME=value` words are environment. One word with spaces is a shell line.
After a queue with a prefix every word is an argument of that prefix, untouched.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)

Assignments = tuple[tuple[str, str], ...]


def is_shell_line(words: Sequence[str]) -> bool:
    """Tell whether a command is one word with spaces, after its assignments."""
    _, rest = split_assignments(words)
    return len(rest) == 1 and any(letter.isspace() for letter in rest[0])


def split_assignments(words: Sequence[str]) -> tuple[Assignments, tuple[str, ...]]:
    """Take the leading `NAME=value` words off a command."""
    found: list[tuple[str, str]] = []
    for position, word in enumerate(words):
        match = _ASSIGNMENT.match(word)
        if match is None:
            return tuple(found), tuple(words[position:])
        found.append((match.group(1), match.group(2)))
    return tuple(found), ()


def default_name(words: Sequence[str]) -> str:
    """Name a job after the base name of its program."""
    _, rest = split_assignments(words)
    if rest and any(letter.isspace() for letter in rest[0].strip()):
        _, rest = split_assignments(rest[0].split())
    program = rest[0] if rest else "job"
    return PurePosixPath(program).name[:64] or "job"


_UNSAFE = re.compile(r"[^A-Za-z0-9_.+=@-]+")


def safe_file_name(name: str) -> str:
    """Make a name fit to be one folder: no slashes, no hidden or special entries."""
    cleaned = _UNSAFE.sub("_", name)[:100]
    return cleaned if cleaned.strip(".") else "_" + cleaned.replace(".", "_")
