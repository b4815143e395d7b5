"""A job's command as a line that can be pasted into a shell."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from grass.client.json_codec import Document

_SAFE = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
)


def command_text(job: Document) -> str:
    """Write a job's command, filled in; a shell line is written as it was given."""
    words: list[str] = job.get("filled_command") or job["command"]
    if job.get("shell") and len(words) == 1:
        return words[0]
    return joined(words)


def in_a_row(job: Document) -> str:
    """Write a job's command, of a script without the comments at its head.

    These are much alike in all scripts, and a row has room for one line.
    """
    text = command_text(job)
    if not text.startswith("#"):
        return text
    lines = text.splitlines()
    while lines and lines[0].lstrip()[:1] in ("", "#"):
        del lines[0]
    return "\n".join(lines) or text


def joined(words: Iterable[str]) -> str:
    """Join words, each quoted where a shell would change it."""
    return " ".join(map(quoted, words))


def quoted(word: str) -> str:
    """Quote a word as `shlex.quote` does, whose import would cost every `show` time.

    A placeholder such as `{index}` needs no quotes: shells leave it alone.
    """
    if word and _SAFE.issuperset(_without_placeholders(word)):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _without_placeholders(word: str) -> str:
    first, *rest = word.split("{")
    for piece in rest:
        name, brace, after = piece.partition("}")
        plain = brace and "," not in name and ".." not in name
        first += name + after if plain else "{"
    return first
