"""Which tests may be skipped where every test counts.

A skipped test proves nothing, so in CI it fails unless the list gives it leave, with a
reason. A line of the list is the beginning of a test's id, a colon and the reason;
ids hold `::`, so the colon that counts is the first one followed by a space.
"""

from collections.abc import Iterable


def leave_to_skip(nodeid: str, lines: Iterable[str]) -> bool:
    """Tell whether the list allows this test to be skipped."""
    return any(nodeid.startswith(prefix) for prefix in _prefixes(lines))


def _prefixes(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        prefix, _, reason = line.partition(": ")
        if not line.startswith("#") and prefix.strip() and reason.strip():
            yield prefix.strip()
