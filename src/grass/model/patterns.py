"""Regular expressions that people type, matched in linear time.

Python's own engine may take years for a short pattern and holds the interpreter all
the while: one selector would freeze a daemon for good. RE2 cannot; what it leaves out
are back references and looking around. It is loaded when the first pattern comes.
"""

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=16)
def compile_pattern(text: str) -> Any:  # noqa: ANN401 -- re2 has no types of its own
    """Return the compiled pattern; raise ValueError where it is none."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "not understood"
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise ValueError(text) from None


def matches(pattern: str, text: str) -> bool:
    """Tell whether the pattern is found anywhere in the text."""
    return compile_pattern(pattern).search(text) is not None
