"""What a check has found: values only."""

from typing import Literal, NamedTuple

Status = Literal["ok", "note", "wrong"]
"""A note is worth knowing and keeps nothing from working."""


class Finding(NamedTuple):
    """The result of one check."""

    check: str
    status: Status
    finding: str
    fix: str = ""
    """What to do about it; empty: nothing."""


def ok(check: str, finding: str) -> Finding:
    """Return that something works."""
    return Finding(check, "ok", finding)


def note(check: str, finding: str, fix: str = "") -> Finding:
    """Return something that is worth knowing."""
    return Finding(check, "note", finding, fix)


def wrong(check: str, finding: str, fix: str) -> Finding:
    """Return something that does not work."""
    return Finding(check, "wrong", finding, fix)
