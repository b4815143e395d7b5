"""How every command prints: what was asked for on stdout, warnings on stderr.

Nothing that came from a job, its name or its command may reach the terminal as an
escape sequence, break a table's line, or fail to be encoded.
"""

from __future__ import annotations

import sys
import unicodedata

from grass.client.json_codec import encoded

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})


def print_document(document: object) -> None:
    """Print one JSON document on a line of its own."""
    sys.stdout.write(encoded(document).decode("ascii") + "\n")


def say(text: str) -> None:
    """Print what a command did."""
    sys.stdout.write(printable(safe(text)) + "\n")


def warn(text: str) -> None:
    """Tell a person something that is not a result."""
    from grass.cli.printing.quantities import lasting

    sys.stderr.write(f"grass: {safe(lasting(text))}\n")


def printable(text: str) -> str:
    """Replace what stdout's encoding cannot express."""
    encoding = sys.stdout.encoding
    return text.encode(encoding, "backslashreplace").decode(encoding)


def counted(number: int, thing: str) -> str:
    """Write `1 job` or `3 jobs`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def safe(text: str) -> str:
    """Return text of one line with everything that is not visible written out."""
    return text if _is_plain(text) else "".join(_visible(one) for one in text)


def safe_lines(text: str) -> str:
    """Return text of several lines made safe, line by line."""
    return "\n".join(safe(line) for line in text.split("\n"))


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _visible(letter: str) -> str:
    if unicodedata.category(letter) not in _HIDDEN:
        return letter
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return letter.encode("unicode_escape").decode("ascii")
