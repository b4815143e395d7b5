"""How every command prints: what was asked for on stdout, warnings on stderr.

Nothing that came from a job, its name or its command may reach the terminal as an
escape sequence, break a table's line, or fail to be encoded.
"""

import sys
import unicodedata

from grass.cli.parsing.options import Values
from grass.client.json_codec import Document, encoded

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})


def print_document(document: object) -> None:
    """Print one JSON document on a line of its own."""
    sys.stdout.write(encoded(document).decode("ascii") + "\n")


def say(text: str) -> None:
    """Print a line about what a command did."""
    sys.stdout.write(printable(safe(text)) + "\n")


def warn(text: str) -> None:
    """Print a line on stderr."""
    from grass.cli.printing.quantities import in_local_time

    sys.stderr.write(f"grass: {safe(in_local_time(text))}\n")


def report_change(
    values: Values, done: Document, changed: str, unchanged: str = ""
) -> int:
    """Print the daemon's reply to a call that may have changed nothing."""
    if values.has("json"):
        print_document(done)
        return 0
    for warning in done.get("warnings", ()):
        warn(warning)
    say(changed if done["changed"] else unchanged)
    return 0


def printable(text: str) -> str:
    """Replace what stdout's encoding cannot express."""
    encoding = sys.stdout.encoding
    return text.encode(encoding, "backslashreplace").decode(encoding)


def counted(number: int, thing: str) -> str:
    """Write `1 job` or `3 jobs`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def counted_jobs(count: int, running: int) -> str:
    """Write how many jobs there are, and how many of several run."""
    part = "all" if running == count else running or "none"
    return f"{counted(count, 'job')}, {part} of them running"


def safe(text: str) -> str:
    """Return text of one line with invisible characters as escapes."""
    return text if _is_plain(text) else "".join(_visible(one) for one in text)


def safe_lines(text: str) -> str:
    """Return text of several lines with invisible characters as escapes."""
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
