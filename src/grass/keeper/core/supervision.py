"""The attempts in the keeper's care, from the wish to start until the exit.

This module deals with how they begin, or are taken over from a dead predecessor;
`endings` with how they end. Like the rest of the core it does no I/O: it says what it
wants done, and is told what came of it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from grass.keeper.core import effects, events
from grass.keeper.core.attempt import Attempt, Ladder, attempt_of, attempts_of
from grass.keeper.core.endings import LOOK_AGAIN_S, SIGCONT, SIGTERM, Endings, pause

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SIGTERM", "Custody"]

SIGSTOP = 19
# A job younger than this gets neither cgroup nor output checks: most never need them.
SETTLE_S = 0.1
UNREAPED_TRIES = 20


class Custody(Endings):
    """Every attempt that is not forgotten, and its deadlines."""

    def __init__(self) -> None:
        super().__init__()
        self._settling: deque[tuple[float, str]] = deque()

    def handlers(self) -> dict[type, Callable[[Any, float], None]]:
        """Return who deals with which event about processes."""
        return {
            events.Forked: self._forked,
            events.SpawnFailed: self._spawn_failed,
            events.ChildEnded: self._child_ended,
            events.Surveyed: self._surveyed,
            events.Adopted: self._adopted,
            events.Missing: self._missing,
            events.AdoptedEnded: self._adopted_ended,
            events.AdoptedUnclear: self._adopted_unclear,
            events.Enclosed: self._enclosed,
            events.Measured: self._measured,
        }

    def take(self, spec: events.Spec, after: str | None) -> None:
        """Take a new attempt into care; it starts when `after` is gone."""
        attempt = self._take_in(spec, after)
        if attempt.after is None:
            self._line_up(attempt, spec)
        else:
            attempt.state = "waiting"
            self._relay.add(spec, attempt.after)

    def refuse(self, spec: events.Spec, after: str | None, reason: str) -> None:
        """Take an attempt into care that is never to run."""
        self._give_up(self._take_in(spec, after), reason)

    def _take_in(self, spec: events.Spec, after: str | None) -> Attempt:
        """Note an attempt, and who must be gone before it.

        One that was given up while it waited is gone before those it waited for; who
        is sent behind it before its daemon knows that waits for them in its place.
        """
        leader = self.attempts.get(after or "")
        while leader is not None and leader.state == "exited":
            leader = self.attempts.get(leader.after or "")
        attempt = self.attempts[spec.id] = attempt_of(spec)
        attempt.after = None if leader is None else leader.id
        self.live += 1
        return attempt

    def spawning(self, id: str) -> list[events.Entry]:
        """Return what must be on record before the attempt is spawned, which is next.

        Each is recorded at its own turn: of those still in line a successor knows
        nothing, and they can be asked for again.
        """
        del self._in_line[id]
        attempt = self.attempts[id]
        attempt.state = "starting"
        return attempt.entries()

    def is_due(self, spec: events.Spec) -> bool:
        """Tell whether an attempt is still to be spawned as this says."""
        return self._in_line.get(spec.id) is spec

    @property
    def in_line(self) -> bool:
        """Tell whether an attempt is to be spawned as soon as that can be."""
        return bool(self._in_line)

    def put_off(self, spec: events.Spec) -> None:
        """Put an attempt back in line: `spawning` did not get on record."""
        self.attempts[spec.id].state = "due"
        self._in_line[spec.id] = spec

    def recall(self, id: str) -> bool:
        """Drop an attempt that has not begun; anything else stays."""
        if not self._leave_line(id):
            return False
        del self.attempts[id]
        self.live -= 1
        self._let_followers_go(id)
        return True

    def _leave_line(self, id: str) -> bool:
        """Take out an attempt that has not begun.

        Who waited for one that waits itself moves up.
        """
        attempt = self.attempts.get(id)
        if attempt is not None and attempt.state == "due":
            del self._in_line[id]
            return True
        if not self._relay.drop(id):
            return False
        for other in self.attempts.values():
            if other.after == id:
                other.after = self.attempts[id].after
        return True

    def stop(self, attempt: Attempt, wish: events.Stop, now: float) -> None:
        """Begin to end an attempt, or hasten an end that has begun."""
        if self._leave_line(attempt.id):
            self._give_up(attempt, wish.reason)
        else:
            ladder = Ladder(now + wish.grace, wish.signal, wish.reason)
            self._begin(ladder, attempt, now)

    def _give_up(self, attempt: Attempt, reason: str) -> None:
        attempt.state = "starting"
        self.want(effects.Record(attempt.spawning_entry()))
        self.want(effects.GiveUp(attempt.id, reason))

    def suspend(self, attempt: Attempt, now: float) -> None:
        """Stop its processes, and once more those that were just being made."""
        attempt.suspended = True
        self._note_suspended(attempt)
        if attempt.state == "running" and attempt.ladder is None:
            self.want(effects.SignalTree(attempt.id, (SIGSTOP,)))
            self.timers.set("suspend", attempt.id, now + LOOK_AGAIN_S[0])

    def go_on(self, attempt: Attempt) -> None:
        """Let its processes go on."""
        attempt.suspended = False
        self._note_suspended(attempt)
        self.timers.cancel("suspend", attempt.id)
        if attempt.state == "running":
            self.want(effects.SignalTree(attempt.id, (SIGCONT,)))

    def _note_suspended(self, attempt: Attempt) -> None:
        if attempt.state not in ("waiting", "due"):
            self.want(effects.Record(attempt.suspended_entry()))

    def forget(self, id: str) -> bool:
        """Drop an exit that is safe elsewhere; anything else stays."""
        attempt = self.attempts.get(id)
        if attempt is None or attempt.state != "exited":
            return False
        del self.attempts[id]
        self.syncing.forget(id)
        return True

    def restore(self, entries: list[events.Entry]) -> None:
        """Take over what a dead predecessor had on record."""
        self.attempts = attempts_of(entries)
        for attempt in self.attempts.values():
            if attempt.state == "exited":
                self.syncing.note_exit(attempt.id)
            else:
                self.live += 1
                self.want(_known_facts(attempt))
                self._take_over(attempt)

    def restore_exits(self, entries: list[events.Entry]) -> None:
        """Take over the exits that an earlier boot had on record.

        Every process of that boot is gone. Of what had not ended nothing is known: the
        broker finds it missing after a restart of the machine, and calls it lost.
        """
        for attempt in attempts_of(entries).values():
            if attempt.state in ("ended", "exited"):
                attempt.finish()
                self.attempts[attempt.id] = attempt
                self.syncing.note_exit(attempt.id)

    def due(self, purpose: str, id: str, now: float) -> None:
        """Act on a deadline that has come."""
        if purpose == "settle":
            self._settle(now)
        elif (attempt := self.attempts.get(id)) is None:
            return
        elif purpose == "kill":
            self._kill(attempt, now)
        elif purpose == "leftovers":
            self._look_for_leftovers(attempt, now)
        elif purpose == "time limit":
            self._limit_reached(attempt, now, "time limit")
        elif purpose == "output":
            self.want(effects.Measure(id))
        elif purpose == "unclear":
            self.want(effects.Inspect(id))
        elif purpose == "suspend" and attempt.ladder is None:
            self.want(effects.SignalTree(id, (SIGSTOP,)))

    def _forked(self, event: events.Forked, now: float) -> None:
        attempt = self.attempts[event.id]
        attempt.pid, attempt.ticks = event.pid, event.ticks
        self._by_pid[event.pid] = attempt
        self.want(effects.Record(attempt.forked_entry()))
        self._resume_ladder(attempt, now)

    def spawned(self, event: events.Spawned, now: float) -> None:
        """Take over a program that runs."""
        attempt = self.attempts[event.id]
        attempt.began(event, now)
        self._by_pid[event.pid] = attempt
        self.want(effects.Publish(attempt.started_entry(), urgent=False))
        self._settling.append((now + SETTLE_S, event.id))
        if len(self._settling) == 1:
            self.timers.set("settle", "", now + SETTLE_S)
        if attempt.time_limit is not None and attempt.time_limit <= SETTLE_S:
            self.timers.set("time limit", event.id, now + attempt.time_limit)
        if attempt.suspended:
            self.suspend(attempt, now)
        self._resume_ladder(attempt, now)

    def _resume_ladder(self, attempt: Attempt, now: float) -> None:
        """Repeat the first signal of a stop that came before there was a process."""
        ladder = attempt.ladder
        if ladder is not None and now < ladder.kill_at:
            self.want(effects.SignalTree(attempt.id, (ladder.signal, SIGCONT)))
        elif ladder is not None:
            self._kill(attempt, now)

    def _spawn_failed(self, event: events.SpawnFailed, now: float) -> None:
        attempt = self.attempts[event.id]
        if attempt.pid is not None:
            self._by_pid.pop(attempt.pid, None)
        attempt.reason = event.reason
        attempt.exited_at = event.at
        self._finish(attempt)

    def cannot_spawn(self, event: events.CannotSpawn) -> None:
        """Put an attempt back in line that this machine could not start.

        Behind the others: should it be its own doing after all, they go on.
        """
        spec, attempt = event.spec, self.attempts[event.spec.id]
        if attempt.ladder is not None:
            # Somebody wants its end by now, and it has come.
            ended = events.SpawnFailed(spec.id, event.reason, event.at)
            self._spawn_failed(ended, 0.0)
            return
        self.want(effects.Unrecord(attempt.id, attempt.entries()))
        if attempt.pid is not None:
            self._by_pid.pop(attempt.pid, None)
            self.want(effects.Release(attempt.id))
        attempt.pid = attempt.ticks = None
        self._line_up(attempt, spec)

    def _settle(self, now: float) -> None:
        settling = self._settling
        while settling and settling[0][0] <= now:
            attempt = self.attempts.get(settling.popleft()[1])
            if attempt is not None and attempt.state == "running":
                self.want(effects.Enclose(attempt.id))
                self._watch_limits(attempt, now)
        if settling:
            self.timers.set("settle", "", settling[0][0])

    def _enclosed(self, event: events.Enclosed, now: float) -> None:
        self.attempts[event.id].cgroup = event.cgroup
        entry = {"e": "enclosed", "id": event.id, "cgroup": event.cgroup}
        self.want(effects.Record(entry))

    def _take_over(self, attempt: Attempt) -> None:
        if attempt.ladder is not None:
            self.timers.set("kill", attempt.id, attempt.ladder.kill_at)
        if attempt.state == "ended":
            self._main_is_gone(attempt)
        elif attempt.pid is None or attempt.ticks is None:
            self.want(effects.Search(attempt.id))
        else:
            self.want(effects.Adopt(attempt.id, attempt.pid, attempt.ticks))

    def _adopted(self, event: events.Adopted, now: float) -> None:
        attempt = self.attempts[event.id]
        if attempt.state == "starting":
            attempt.found = attempt.pid is None
            found = events.Spawned(event.id, event.pid, event.ticks, event.at, 0, 0)
            attempt.began(found, now)
            self.want(effects.Publish(attempt.started_entry()))
        self._watch_limits(attempt, now)

    def _missing(self, event: events.Missing, now: float) -> None:
        attempt = self.attempts[event.id]
        attempt.ended_adopted(None, event.at)
        self._main_is_gone(attempt)

    def _adopted_ended(self, event: events.AdoptedEnded, now: float) -> None:
        attempt = self.attempts[event.id]
        # One found by its marker may be a child of the main process, which had a code
        # of its own: that is never guessed.
        status = None if attempt.found else event.status
        attempt.ended_adopted(status, event.at)
        attempt.measure(now)
        self._main_is_gone(attempt)

    def _adopted_unclear(self, event: events.AdoptedUnclear, now: float) -> None:
        attempt = self.attempts[event.id]
        attempt.looks += 1
        if event.over and attempt.looks > UNREAPED_TRIES:
            attempt.ended_adopted(None, event.at)
            self._main_is_gone(attempt)
        else:
            self.timers.set("unclear", attempt.id, now + pause(attempt.looks))


def _known_facts(attempt: Attempt) -> effects.Know:
    pid, ticks = attempt.pid or 0, attempt.ticks or 0
    return effects.Know(attempt.id, pid, ticks, attempt.cgroup, attempt.files())
