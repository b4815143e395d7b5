"""Telling selectors from other words, before a daemon is asked what they mean."""

from __future__ import annotations


def is_selector(word: str) -> bool:
    """Tell whether a word selects jobs; otherwise it may be a queue's name."""
    begins = word.startswith(("@", "name~", "state:", "queue:"))
    return begins or word in ("last", "all") or word[:1].isdecimal()


def is_one(word: str) -> bool:
    """Tell whether a selector can only mean one job."""
    return word.isdecimal() or word == "last"


def names_one(select: list[str]) -> bool:
    """Tell whether selectors can only mean one job."""
    return len(select) == 1 and is_one(select[0])
