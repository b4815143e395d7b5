"""Text from jobs and daemons made safe for a terminal.

Nothing that came from a job, its name or its command may reach the terminal as an
escape sequence, break a table's line, or fail to be encoded.
"""

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})


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
