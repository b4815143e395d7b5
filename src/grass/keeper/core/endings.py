"""How attempts end: limits, stops, leftovers, and the exit.

What always holds: an exit is published only when nothing of the attempt's tree is left,
and whoever waits for it starts after that; a stop that has begun ends with SIGKILL,
repeated until the tree is empty; of several causes to stop, the first is the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grass.keeper.core import effects, events
from grass.keeper.core.attempt import Attempt, Ladder
from grass.keeper.core.deadlines import Timers
from grass.keeper.core.prefetch import Relay
from grass.keeper.system.record_sync import Syncing

if TYPE_CHECKING:
    from grass.keeper.core.events import Spec

SIGTERM, SIGCONT = 15, 18
LEFTOVER_GRACE_S = 2.0
LOOK_AGAIN_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
OUTPUT_BYTES_PER_S = 1 << 30
_PURPOSES = ("kill", "leftovers", "time limit", "output", "unclear", "suspend")


class Endings:
    """The attempts that are not forgotten, and what ends those that run."""

    def __init__(self) -> None:
        self.attempts: dict[str, Attempt] = {}
        self.timers = Timers()
        self.live = 0
        self.syncing = Syncing()
        self._relay = Relay()
        self._by_pid: dict[int, Attempt] = {}
        self._ended: dict[str, Attempt] = {}
        self._in_line: dict[str, Spec] = {}
        # Who is to be spawned next; one that was recalled may be asked for again
        # with other units before its turn would have come.
        self._wanted: list[effects.Effect] = []

    def want(self, effect: effects.Effect) -> None:
        """Ask for something to be done at the end of this step."""
        self._wanted.append(effect)

    def take_effects(self) -> list[effects.Effect]:
        """Return what is wanted, in order, and begin anew."""
        wanted, self._wanted = self._wanted, []
        return wanted

    def _line_up(self, attempt: Attempt, spec: Spec) -> None:
        attempt.state, attempt.after = "due", None
        self._in_line[attempt.id] = spec
        self.want(effects.Spawn(spec))

    def _child_ended(self, event: events.ChildEnded, now: float) -> None:
        attempt = self._by_pid.pop(event.pid, None)
        if attempt is None:
            # An orphan's end may be the end of a tree that is waited for.
            for id in self._ended:
                self.want(effects.Survey(id))
            return
        if attempt.state == "starting":
            attempt.reason = "could not start: ended before its program ran"
        attempt.ended(event, now)
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
        self.syncing.note_exit(attempt.id)
        self._begin(Ladder(now + LEFTOVER_GRACE_S, SIGTERM, None), attempt, now)
        self.timers.set("leftovers", attempt.id, now + LOOK_AGAIN_S[0])

    def _look_for_leftovers(self, attempt: Attempt, now: float) -> None:
        # Orphans of an adopted attempt are not our children: only looking tells.
        attempt.looks += 1
        self.timers.set("leftovers", attempt.id, now + pause(attempt.looks))
        self.want(effects.Survey(attempt.id))

    def _finish(self, attempt: Attempt) -> None:
        attempt.finish()
        self._ended.pop(attempt.id, None)
        self.live -= 1
        for purpose in _PURPOSES:
            self.timers.cancel(purpose, attempt.id)
        self.want(effects.Release(attempt.id))
        self.want(effects.Publish(attempt.exited_entry("exited")))
        self.syncing.note_exit(attempt.id)
        self._let_followers_go(attempt.id)

    def _let_followers_go(self, id: str) -> None:
        for spec in self._relay.let_go(id):
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
            self.timers.set("kill", attempt.id, now + pause(attempt.ladder.rounds))
            attempt.ladder.rounds += 1

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
        if attempt.lost or attempt.reason is None:
            # Also in place of that nobody knows its exit: a daemon may know it yet.
            attempt.reason = "output limit"
        if attempt.own_output:
            self.want(effects.Truncate(attempt.output, attempt.offset + limit))
            attempt.output_bytes = limit

    def _limit_reached(self, attempt: Attempt, now: float, reason: str) -> None:
        if attempt.state == "running":
            self._begin(Ladder(now + attempt.grace, SIGTERM, reason), attempt, now)


def pause(round: int) -> float:
    """Return how long to wait before the next look or try."""
    return LOOK_AGAIN_S[min(round, len(LOOK_AGAIN_S) - 1)]
