"""The attempts in the keeper's care, from the wish to start until the exit.

What always holds: an exit is published only when nothing of the attempt's tree is left,
and whoever waits for it starts after that; a stop that has begun ends with SIGKILL,
repeated until the tree is empty; of several causes to stop, the first is the reason.
Like the rest of the core it does no I/O: it says what it wants done, and is told what
came of it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from grass.keeper import effects, events
from grass.keeper.attempt import Attempt, Ladder, attempt_of, attempts_of
from grass.keeper.relay import Relay
from grass.keeper.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable

SIGTERM, SIGCONT, SIGSTOP = 15, 18, 19
# A job younger than this gets neither cgroup nor output checks: most never need them.
SETTLE_S = 0.1
LEFTOVER_GRACE_S = 2.0
LOOK_AGAIN_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
UNREAPED_TRIES = 20
OUTPUT_BYTES_PER_S = 1 << 30
_PURPOSES = ("kill", "leftovers", "time limit", "output", "unclear", "suspend")


class Custody:
    """Every attempt that is not forgotten, and its deadlines."""

    def __init__(self) -> None:
        """Begin with none."""
        self.attempts: dict[str, Attempt] = {}
        self.timers = Timers()
        self.live = 0
        self._relay = Relay()
        self._by_pid: dict[int, Attempt] = {}
        self._ended: dict[str, Attempt] = {}
        self._settling: deque[tuple[float, str]] = deque()
        self._wanted: list[effects.Effect] = []

    def handlers(self) -> dict[type, Callable[[Any, float], None]]:
        """Return who deals with which event about processes."""
        return {
            events.Forked: self._forked,
            events.Spawned: self._spawned,
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

    def want(self, effect: effects.Effect) -> None:
        """Ask for something to be done at the end of this step."""
        self._wanted.append(effect)

    def take_effects(self) -> list[effects.Effect]:
        """Return what is wanted, in order, and begin anew."""
        wanted, self._wanted = self._wanted, []
        return wanted

    def take(self, spec: events.Spec, after: str | None) -> None:
        """Take a new attempt into care; it starts when `after` is gone."""
        predecessor = None if after is None else self.attempts.get(after)
        attempt = self.attempts[spec.id] = attempt_of(spec)
        self.live += 1
        if predecessor is None or predecessor.state == "exited":
            self._line_up(attempt, spec)
        else:
            attempt.state, attempt.after = "waiting", predecessor.id
            self._relay.add(spec, predecessor.id)

    def refuse(self, spec: events.Spec, reason: str) -> None:
        """Take an attempt into care that is never to run."""
        attempt = self.attempts[spec.id] = attempt_of(spec)
        self.live += 1
        self._give_up(attempt, reason)

    def _line_up(self, attempt: Attempt, spec: events.Spec) -> None:
        attempt.state, attempt.after = "due", None
        self.want(effects.Spawn(spec))

    def spawning(self, id: str) -> list[events.Entry]:
        """Return what must be on record before the attempt is spawned, which is next.

        Each is recorded at its own turn: of those still in line a successor knows
        nothing, and they can be asked for again.
        """
        attempt = self.attempts[id]
        attempt.state = "starting"
        return attempt.entries()

    def recall(self, id: str) -> bool:
        """Drop an attempt that still waits; anything else stays."""
        if not self._leave_line(id):
            return False
        del self.attempts[id]
        self.live -= 1
        return True

    def _leave_line(self, id: str) -> bool:
        """Take out an attempt if it waits; who waited for it moves up."""
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
        attempt.state, attempt.after = "starting", None
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
        return True

    def restore(self, entries: list[events.Entry]) -> None:
        """Take over what a dead predecessor had on record."""
        self.attempts = attempts_of(entries)
        for attempt in self.attempts.values():
            if attempt.state != "exited":
                self.live += 1
                self.want(_known_facts(attempt))
                self._take_over(attempt)

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

    def _spawned(self, event: events.Spawned, now: float) -> None:
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

    def _child_ended(self, event: events.ChildEnded, now: float) -> None:
        attempt = self._by_pid.pop(event.pid, None)
        if attempt is None:
            # An orphan's end may be the end of a tree that is waited for.
            for id in self._ended:
                self.want(effects.Survey(id))
            return
        if attempt.state == "starting":
            attempt.reason = "could not start: ended before its program ran"
        attempt.ended(event)
        self._main_is_gone(attempt)

    def _main_is_gone(self, attempt: Attempt) -> None:
        self._ended[attempt.id] = attempt
        # Its end is known: to ask once more would be answered by "no such process".
        self.timers.cancel("unclear", attempt.id)
        self.want(effects.Survey(attempt.id))

    def _surveyed(self, event: events.Surveyed, now: float) -> None:
        attempt = self._ended.get(event.id)
        if attempt is None:
            return
        attempt.output_bytes = event.output_bytes
        if event.empty:
            self._check_output(attempt)
            self._finish(attempt)
        elif ("leftovers", event.id) not in self.timers:
            self._begin_on_leftovers(attempt, now)

    def _begin_on_leftovers(self, attempt: Attempt, now: float) -> None:
        self.want(effects.Record(attempt.exited_entry("ended")))
        self._begin(Ladder(now + LEFTOVER_GRACE_S, SIGTERM, None), attempt, now)
        self.timers.set("leftovers", attempt.id, now + LOOK_AGAIN_S[0])

    def _look_for_leftovers(self, attempt: Attempt, now: float) -> None:
        # Orphans of an adopted attempt are not our children: only looking tells.
        attempt.looks += 1
        self.timers.set("leftovers", attempt.id, now + _pause(attempt.looks))
        self.want(effects.Survey(attempt.id))

    def _finish(self, attempt: Attempt) -> None:
        if attempt.ladder is not None and attempt.ladder.reason is not None:
            attempt.reason = attempt.ladder.reason
        attempt.state = "exited"
        self._ended.pop(attempt.id, None)
        self.live -= 1
        for purpose in _PURPOSES:
            self.timers.cancel(purpose, attempt.id)
        self.want(effects.Release(attempt.id))
        self.want(effects.Publish(attempt.exited_entry("exited")))
        for spec in self._relay.let_go(attempt.id):
            self._line_up(self.attempts[spec.id], spec)

    def _begin(self, ladder: Ladder, attempt: Attempt, now: float) -> None:
        if attempt.ladder is not None:
            if ladder.kill_at >= attempt.ladder.kill_at:
                return
            attempt.ladder.kill_at = ladder.kill_at
        else:
            attempt.ladder = ladder
            if ladder.kill_at > now:
                signals = (ladder.signal, SIGCONT)
                self.want(effects.SignalTree(attempt.id, signals))
        entry = attempt.stopping_entry(attempt.ladder)
        note = effects.Record if attempt.state == "ended" else effects.Publish
        self.want(note(entry))
        if ladder.kill_at > now:
            self.timers.set("kill", attempt.id, ladder.kill_at)
        else:
            self._kill(attempt, now)

    def _kill(self, attempt: Attempt, now: float) -> None:
        if attempt.ladder is not None:
            self.want(effects.KillTree(attempt.id))
            self.timers.set("kill", attempt.id, now + _pause(attempt.ladder.rounds))
            attempt.ladder.rounds += 1

    def _settle(self, now: float) -> None:
        settling = self._settling
        while settling and settling[0][0] <= now:
            attempt = self.attempts.get(settling.popleft()[1])
            if attempt is not None and attempt.state == "running":
                self.want(effects.Enclose(attempt.id))
                self._watch_limits(attempt, now)
        if settling:
            self.timers.set("settle", "", settling[0][0])

    def _watch_limits(self, attempt: Attempt, now: float) -> None:
        if attempt.time_limit is not None:
            due = attempt.since + attempt.time_limit
            self.timers.set("time limit", attempt.id, due)
        if attempt.max_output is not None:
            self._watch_output(attempt, attempt.max_output, now)

    def _watch_output(self, attempt: Attempt, remaining: int, now: float) -> None:
        pause = max(0.25, min(10.0, remaining / OUTPUT_BYTES_PER_S))
        self.timers.set("output", attempt.id, now + pause)

    def _measured(self, event: events.Measured, now: float) -> None:
        attempt = self.attempts.get(event.id)
        if attempt is None or attempt.state != "running" or attempt.max_output is None:
            return
        if event.written > attempt.max_output:
            self._limit_reached(attempt, now, "output limit")
        else:
            self._watch_output(attempt, attempt.max_output - event.written, now)

    def _check_output(self, attempt: Attempt) -> None:
        """Hold a job to its limit that wrote faster than was looked."""
        limit = attempt.max_output
        if limit is None or attempt.output_bytes <= limit:
            return
        attempt.reason = attempt.reason or "output limit"
        if attempt.own_output:
            self.want(effects.Truncate(attempt.output, attempt.offset + limit))
            attempt.output_bytes = limit

    def _limit_reached(self, attempt: Attempt, now: float, reason: str) -> None:
        if attempt.state == "running":
            self._begin(Ladder(now + attempt.grace, SIGTERM, reason), attempt, now)

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
        self._main_is_gone(attempt)

    def _adopted_unclear(self, event: events.AdoptedUnclear, now: float) -> None:
        attempt = self.attempts[event.id]
        attempt.looks += 1
        if event.over and attempt.looks > UNREAPED_TRIES:
            attempt.ended_adopted(None, event.at)
            self._main_is_gone(attempt)
        else:
            self.timers.set("unclear", attempt.id, now + _pause(attempt.looks))


def _pause(round: int) -> float:
    return LOOK_AGAIN_S[min(round, len(LOOK_AGAIN_S) - 1)]


def _known_facts(attempt: Attempt) -> effects.Know:
    pid, ticks = attempt.pid or 0, attempt.ticks or 0
    return effects.Know(attempt.id, pid, ticks, attempt.cgroup, attempt.files())
