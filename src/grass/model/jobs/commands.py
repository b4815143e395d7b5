"""What a job runs: from the words a person typed to a program and its arguments.

Leading `NAME=value` words are environment. One word with spaces is a shell line, also
when it begins with assignments. In a queue with a prefix every word is an argument of
that prefix, unchanged. Sizes are limited to what a kernel can start.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from grass.errors import UsageError

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)

_SPACE = re.compile(r"\s")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+=@-]+")

LARGEST_PRIORITY = 1_000_000
LONGEST_WORD = 131_071
"""In bytes: the kernel's limit of an argument and of a `NAME=value`."""
LARGEST_COMMAND = 2 * 1024 * 1024 - 16 * 1024
"""In bytes, with the environment; leaves room for what the worker adds."""
POINTER = 9
"""In bytes: what a word takes besides its text."""
UNCHECKED_LENGTH = LONGEST_WORD // 4
"""In characters: no shorter word has too many bytes."""

Assignments = tuple[tuple[str, str], ...]


def is_shell_line(words: Sequence[str]) -> bool:
    """Return whether a command is one word with spaces, after its assignments."""
    _, rest = split_assignments(words)
    return len(rest) == 1 and _SPACE.search(rest[0]) is not None


def split_assignments(words: Sequence[str]) -> tuple[Assignments, tuple[str, ...]]:
    """Split the leading `NAME=value` words off a command."""
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


def safe_file_name(name: str) -> str:
    """Make a name usable for one folder: no slashes, not hidden or special."""
    cleaned = _UNSAFE.sub("_", name)[:100]
    return cleaned if cleaned.strip(".") else "_" + cleaned.replace(".", "_")


def check_size(words: Iterable[str], env: Iterable[tuple[str, str]]) -> None:
    """Refuse a command that no kernel would start."""
    total = 0
    for what, text in _parts(words, env):
        size = len(text.encode("utf-8", "surrogatepass"))
        total += size + POINTER
        if size > LONGEST_WORD:
            raise UsageError(
                f"{what} of {size} bytes is too long, at most {LONGEST_WORD} are taken",
                "put it into a file, and give the file's name",
            )
    if total > LARGEST_COMMAND:
        raise UsageError(
            f"a command and its environment of {total} bytes are too large, at most"
            f" {LARGEST_COMMAND} are taken",
            "put what is long into a file, and give the file's name",
        )


def _parts(
    words: Iterable[str], env: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield all strings that a program is started with, each with a description."""
    for word in words:
        yield "a word", word
    for name, value in env:
        yield f"the variable `{name[:60]}`", f"{name}={value}"
