"""Lines of output as people see them, and patterns that they are searched for.

A line ends with a newline. A progress bar that returns to its beginning again and again
is one line, of which a terminal shows what was written last.
"""

import re
from functools import lru_cache
from typing import Any

from grass.model.selectors import compile_pattern

_PUNCTUATION = re.compile(r"[!-/:-@\[-^`{-~]")
_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    rb"|[PX^_][^\x1b\n]*(?:\x1b\\)?|[ -/]*[0-~]?)"
)
TRACEBACK = r"Traceback \(most recent call last\)"


def folded(line: bytes) -> bytes:
    """Return what a progress bar wrote last; any other line as it is."""
    line = line.rstrip(b"\r\n")
    return line[line.rfind(b"\r") + 1 :]


def without_escapes(lines: bytes) -> bytes:
    """Leave out what a terminal obeys and does not show; newlines stay."""
    return _ESCAPE.sub(b"", lines) if b"\x1b" in lines else lines


def literal(text: str) -> str:
    """Return the pattern that finds a text, in capitals or not."""
    return "(?i)" + _PUNCTUATION.sub(r"\\\g<0>", text)


@lru_cache(maxsize=16)
def line_pattern(text: str) -> Any:  # noqa: ANN401 -- re2 has no types of its own
    """Compile a pattern that matches within one line; raise ValueError if it is wrong.

    It searches bytes of many lines at once: `^` and `$` are the ends of a line, and
    nothing matches a newline.
    """
    compile_pattern(text)
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_nl = options.never_capture = True
    return re2.compile(f"(?m)(?:{text})".encode(), options)
