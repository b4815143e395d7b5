"""Attempts of an earlier keeper: restored from its records, their processes adopted.

An adopted process is not this keeper's child, so its exit code may be unknown. A code
is never guessed. The process of a guest is no child of a keeper either, and is watched
in the same way from the beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.attempt import KeeperAttempt, attempts_of
from grass.keeper.core.deadlines import pause
from grass.keeper.protocol import SpawningEntry

if TYPE_CHECKING:
    from grass.keeper.core.exits import Exits
    from grass.keeper.core.keeper_state import KeeperState
    from grass.keeper.core.running import RunningAttempts
    from grass.keeper.protocol import AdoptVerb, Entry

UNREAPED_TRIES = 20
GUEST_TRIES = 5
"""The parent of a guest may never reap it, and its units must not wait for that."""


class Takeover:
    """Takes over the attempts that an earlier keeper recorded."""

    def __init__(
        self, state: KeeperState, running: RunningAttempts, exits: Exits
    ) -> None:
        self._state = state
        self._running = running
        self._exits = exits

    def restore(self, entries: list[Entry]) -> None:
        """Take over the attempts of an earlier keeper of this boot."""
        self._state.attempts.update(attempts_of(entries))
        for attempt in self._state.attempts.values():
            if attempt.state == "exited":
                self._exits.unsynced.add(attempt.id)
            else:
                self._state.live += 1
                self._state.want(_known_process(attempt))
                self._adopt(attempt)

    def search(self, verb: AdoptVerb) -> None:
        """Take over an attempt of which there is no record, if its processes are found.

        Until that is known it is on record as one that may have begun.
        """
        limits = verb.grace, verb.time_limit, None
        spawning = SpawningEntry(
            verb.id, verb.output, verb.stderr, *limits, own_output=False, meta=verb.meta
        )
        attempt = self._state.attempts[verb.id] = KeeperAttempt(spawning)
        self._state.live += 1
        self._state.want(effects.Record(spawning))
        self._state.want(_known_process(attempt))
        self._adopt(attempt)

    def restore_exits(self, entries: list[Entry]) -> None:
        """Take over the exits that were recorded in an earlier boot.

        All processes of that boot are gone. Attempts without an exit are dropped: the
        broker finds them missing after a restart of the machine, and they are lost.
        """
        for attempt in attempts_of(entries).values():
            if attempt.state in ("ended", "exited"):
                attempt.finish()
                self._state.attempts[attempt.id] = attempt
                self._exits.unsynced.add(attempt.id)

    def _adopt(self, attempt: KeeperAttempt) -> None:
        if attempt.stop_plan is not None:
            kill_at = attempt.stop_plan.kill_at
            self._state.timers.set("kill", attempt.id, kill_at)
        if attempt.state == "ended":
            self._exits.main_ended(attempt)
        elif attempt.pid is None or attempt.ticks is None:
            self._state.want(effects.Search(attempt.id))
        else:
            adopt = effects.Adopt(attempt.id, attempt.pid, attempt.ticks)
            self._state.want(adopt)

    def adopted(self, event: events.Adopted, now: float) -> None:
        """Note a process that is alive and watched."""
        attempt = self._state.attempts[event.id]
        if attempt.state == "starting":
            # A runner may not have read the task: its exit code is of another then.
            attempt.found = attempt.pid is None or attempt.spawning.runner
            found = events.Spawned(event.id, event.pid, event.ticks, event.at, 0, 0)
            attempt.began(found, now)
            self._state.want(effects.Publish(attempt.started_entry()))
            if attempt.suspended:
                self._running.suspend(attempt, now)
        self._running.watch_limits(attempt, now)

    def missing(self, event: events.Missing, now: float) -> None:
        """Note a process that is gone without a trace."""
        attempt = self._state.attempts[event.id]
        attempt.ended_adopted(None, event.at)
        self._exits.main_ended(attempt)

    def adopted_ended(self, event: events.AdoptedEnded, now: float) -> None:
        """Note that an adopted process is gone."""
        attempt = self._state.attempts.get(event.id)
        if attempt is None or not attempt.is_live:
            # A guest was done with its attempt before.
            return
        # A process that was found by its marker may be a child of the main process,
        # whose exit code is unknown.
        status = None if attempt.found else event.status
        attempt.ended_adopted(status, event.at)
        attempt.measure(now)
        self._exits.main_ended(attempt)

    def adopted_unclear(self, event: events.AdoptedUnclear, now: float) -> None:
        """Inspect a process again later, but not for ever."""
        attempt = self._state.attempts.get(event.id)
        if attempt is None or not attempt.is_live:
            return
        attempt.looks += 1
        tries = GUEST_TRIES if attempt.is_guest else UNREAPED_TRIES
        if event.over and attempt.looks > tries:
            attempt.ended_adopted(None, event.at)
            self._exits.main_ended(attempt)
        else:
            due = now + pause(attempt.looks)
            self._state.timers.set("unclear", attempt.id, due)

    def inspect(self, attempt: KeeperAttempt, now: float) -> None:
        """Inspect a process again."""
        self._state.want(effects.Inspect(attempt.id))


def _known_process(attempt: KeeperAttempt) -> effects.Know:
    pid, ticks = attempt.pid or 0, attempt.ticks or 0
    kind = attempt.is_guest, attempt.spawning.runner
    return effects.Know(attempt.id, pid, ticks, attempt.cgroup, attempt.files(), *kind)
