"""Attempts that have not begun: the queue of spawns, and who waits for whom.

An attempt with `after` waits until that one has exited; the others are spawned as soon
as possible, in order. Nothing here is on record: a successor knows nothing of these
attempts, and is asked for them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grass.keeper.core import effects
from grass.keeper.core.attempt import attempt_of

if TYPE_CHECKING:
    from grass.keeper.core.attempt import KeeperAttempt
    from grass.keeper.core.keeper_state import KeeperState
    from grass.keeper.core.runners import Runners
    from grass.keeper.protocol import Entry, StartVerb


class Starts:
    """The attempts that have not begun."""

    def __init__(self, state: KeeperState, runners: Runners) -> None:
        self._state = state
        self._runners = runners
        self._waiting = WaitingStarts()
        self._due: dict[str, StartVerb] = {}

    def add(self, start: StartVerb) -> None:
        """Add a new attempt; it is spawned when the one before it has exited."""
        attempt = self._new_attempt(start)
        if attempt.after is None:
            self.queue(attempt, start)
        else:
            attempt.state = "waiting"
            self._waiting.add(start, attempt.after)

    def refuse(self, start: StartVerb, reason: str) -> None:
        """Add an attempt that is never to run."""
        self.give_up(self._new_attempt(start), reason)

    def _new_attempt(self, start: StartVerb) -> KeeperAttempt:
        after = self._live_predecessor(start.after)
        attempt = self._state.attempts[start.id] = attempt_of(start)
        attempt.after = after
        self._state.live += 1
        return attempt

    def _live_predecessor(self, after: str | None) -> str | None:
        """Return the attempt that must exit before one that is to run after this one.

        An attempt that was given up while it waited exits before those it waited for.
        A start that was sent behind it before its daemon knew that waits for them. Any
        text can be an id, and a daemon may reuse it: a chain of exits may be a circle.
        """
        seen: set[str] = set()
        while after is not None and after not in seen:
            seen.add(after)
            predecessor = self._state.attempts.get(after)
            if predecessor is None or predecessor.state != "exited":
                return None if predecessor is None else after
            after = predecessor.after
        return None

    def queue(self, attempt: KeeperAttempt, start: StartVerb) -> None:
        """Have an attempt spawned after those that are queued already."""
        attempt.state, attempt.after = "due", None
        self._due[attempt.id] = start
        self._state.want(effects.Spawn(start))

    def is_due(self, start: StartVerb) -> bool:
        """Tell whether this very start is still to be spawned."""
        # By identity: an attempt that was recalled may be asked for again, with other
        # units, before the spawn that was planned first.
        return self._due.get(start.id) is start

    @property
    def any_due(self) -> bool:
        """Tell whether an attempt is to be spawned as soon as possible."""
        return bool(self._due)

    def begin(self, id: str) -> list[Entry]:
        """Return what must be on record before the attempt, the next, is spawned.

        Each is recorded right before its own spawn, not when it is queued.
        """
        start = self._due.pop(id)
        attempt = self._state.attempts[id]
        attempt.state = "starting"
        self._runners.begin(start, attempt)
        return attempt.entries()

    def postpone(self, start: StartVerb, now: float) -> None:
        """Put an attempt back into the queue: `begin` could not be recorded.

        Nothing ran and nothing is on record, so it is neither failed nor lost: it may
        still be stopped or recalled, and a successor is asked for it again. If it were
        returned to the broker, it would be placed here again at once.
        """
        attempt = self._state.attempts[start.id]
        attempt.state = "due"
        if start.task is not None:
            attempt.pid = attempt.ticks = None
            self._runners.not_begun(start.id, now)
        self._due[start.id] = start

    def recall(self, id: str) -> bool:
        """Drop an attempt that has not begun; others are left alone."""
        if not self.withdraw(id):
            return False
        self.drop(id)
        return True

    def drop(self, id: str) -> None:
        """Forget an attempt of which nothing ran."""
        del self._state.attempts[id]
        self._state.live -= 1
        self.start_followers(id)

    def withdraw(self, id: str) -> bool:
        """Take an attempt that has not begun out of the queue, or out of the wait.

        Those that waited for it wait for its own predecessor.
        """
        attempts = self._state.attempts
        attempt = attempts.get(id)
        if attempt is not None and attempt.state == "due":
            del self._due[id]
            return True
        if not self._waiting.drop(id):
            return False
        for other in attempts.values():
            if other.after == id:
                other.after = attempts[id].after
        return True

    def give_up(self, attempt: KeeperAttempt, reason: str) -> None:
        """Record an attempt that never runs, and have it exit with this reason."""
        attempt.state = "starting"
        self._state.want(effects.Record(attempt.spawning))
        self._state.want(effects.GiveUp(attempt.id, reason))

    def key_after(self, id: str) -> str | None:
        """Return the key of the task that waits for this attempt, if there is one."""
        first = self._waiting.first_follower(id)
        return None if first is None or first.task is None else first.task.key

    def has_followers(self, id: str, count: int) -> bool:
        """Tell whether so many attempts wait for this one, each behind the other."""
        for _ in range(count):
            first = self._waiting.first_follower(id)
            if first is None:
                return False
            id = first.id
        return True

    def start_followers(self, id: str) -> None:
        """Queue the attempts that waited for this one."""
        for start in self._waiting.take_followers(id):
            self.queue(self._state.attempts[start.id], start)


class WaitingStarts:
    """Starts that wait for another attempt to exit, in the order they came.

    What always holds: a start waits for exactly one attempt and is taken once; the
    followers of one that is dropped wait for its predecessor, so that no start waits
    for an attempt that will never exit.
    """

    def __init__(self) -> None:
        self._starts: dict[str, StartVerb] = {}
        self._predecessor: dict[str, str] = {}
        self._followers: dict[str, list[str]] = {}

    def add(self, start: StartVerb, after: str) -> None:
        """Let a start wait until `after` has exited."""
        self._starts[start.id] = start
        self._predecessor[start.id] = after
        self._followers.setdefault(after, []).append(start.id)

    def first_follower(self, predecessor: str) -> StartVerb | None:
        """Return the first start that waits for this attempt."""
        followers = self._followers.get(predecessor)
        return self._starts[followers[0]] if followers else None

    def take_followers(self, predecessor: str) -> list[StartVerb]:
        """Remove and return the starts that wait for this attempt."""
        followers = self._followers.pop(predecessor, [])
        for id in followers:
            del self._predecessor[id]
        return [self._starts.pop(id) for id in followers]

    def drop(self, id: str) -> bool:
        """Remove a start if it waits; its followers take its place."""
        if self._starts.pop(id, None) is None:
            return False
        predecessor = self._predecessor.pop(id)
        followers = self._followers.pop(id, [])
        for follower in followers:
            self._predecessor[follower] = predecessor
        siblings = self._followers[predecessor]
        place = siblings.index(id)
        siblings[place : place + 1] = followers
        if not siblings:
            del self._followers[predecessor]
        return True
