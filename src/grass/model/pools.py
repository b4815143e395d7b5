"""Pools and pilots: workers that somebody else's scheduler starts for us."""

from enum import StrEnum


class PilotState(StrEnum):
    """What an engine says of a pilot's job; the worker's connection is the truth."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    """It ended, in whatever way; nothing of it is coming any more."""
    ABSENT = "absent"
    """The engine answered, and lists no such job: it forgot it, or never had it.

    A worker that is connected may still be in it.
    """
    UNKNOWN = "unknown"
    """The engine gave a word that we do not know, or contradicts itself."""
