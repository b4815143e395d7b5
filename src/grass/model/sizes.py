"""How large what people give may be; of a command: what a kernel would start."""

from collections.abc import Iterable, Iterator

from grass.errors import UsageError

LARGEST_PRIORITY = 1_000_000
LONGEST_WORD = 131_071
"""In bytes: the kernel takes no longer argument, nor a longer `NAME=value`."""
LARGEST_COMMAND = 2 * 1024 * 1024 - 16 * 1024
"""In bytes, with the environment; a program also has what its worker gives it."""
POINTER = 9
"""In bytes: what a word takes besides its text."""
UNCHECKED_LENGTH = LONGEST_WORD // 4
"""In characters: no word of so few has too many bytes."""


def check_priority(priority: int) -> None:
    """Refuse what is out of range."""
    if abs(priority) > LARGEST_PRIORITY:
        raise UsageError(f"priority {priority} is out of range")


def check(words: Iterable[str], env: Iterable[tuple[str, str]]) -> None:
    """Refuse what no kernel would start."""
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
    """Give all that a program is started with, and what it is."""
    for word in words:
        yield "a word", word
    for name, value in env:
        yield f"the variable `{name[:60]}`", f"{name}={value}"
