"""The attempts that wait for another one to be gone, and for which one.

What always holds: an attempt waits for exactly one other, and is let go once; one that
is dropped leaves its followers to its own predecessor, so that nobody waits for an
attempt that will never end. Whether a predecessor is known and still to end is for the
caller to say. Nothing of this is on record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grass.keeper.core.events import Spec


class Relay:
    """Who follows whom, in the order of the wishes."""

    def __init__(self) -> None:
        self._specs: dict[str, Spec] = {}
        self._predecessor: dict[str, str] = {}
        self._followers: dict[str, list[str]] = {}

    def add(self, spec: Spec, after: str) -> None:
        """Let an attempt wait until `after` is gone."""
        self._specs[spec.id] = spec
        self._predecessor[spec.id] = after
        self._followers.setdefault(after, []).append(spec.id)

    def let_go(self, predecessor: str) -> list[Spec]:
        """Return those who waited for this attempt; they wait no more."""
        followers = self._followers.pop(predecessor, [])
        for id in followers:
            del self._predecessor[id]
        return [self._specs.pop(id) for id in followers]

    def drop(self, id: str) -> bool:
        """Take out an attempt if it waits; its followers move up into its place."""
        if self._specs.pop(id, None) is None:
            return False
        predecessor = self._predecessor.pop(id)
        followers = self._followers.pop(id, [])
        for follower in followers:
            self._predecessor[follower] = predecessor
        beside = self._followers[predecessor]
        place = beside.index(id)
        beside[place : place + 1] = followers
        if not beside:
            del self._followers[predecessor]
        return True
