"""How attempts exit: the main process ends, then the rest is ended, then it is told.

What always holds: an exit is published only when no process of the attempt is left, and
the attempts that wait for it start after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.attempt import StopPlan
from grass.keeper.core.deadlines import PAUSES_S, pause
from grass.keeper.core.running import SIGCONT, SIGTERM
from grass.keeper.exit_reasons import MEMORY_LIMIT
from grass.keeper.protocol import ForgottenEntry, RecalledEntry

if TYPE_CHECKING:
    from grass.keeper.core.attempt import KeeperAttempt
    from grass.keeper.core.keeper_state import KeeperState
    from grass.keeper.core.runners import Runners
    from grass.keeper.core.running import RunningAttempts
    from grass.keeper.core.starts import Starts

LEFTOVER_GRACE_S = 2.0
MANY = 8
"""With so many attempts that wait for one, its exit may wait for others."""
_PURPOSES = (
    *("kill", "leftovers", "time limit", "warning", "output", "unclear", "suspend"),
)


class Exits:
    """Attempts whose main process has ended, up to the exits that are kept."""

    def __init__(
        self,
        state: KeeperState,
        starts: Starts,
        running: RunningAttempts,
        runners: Runners,
    ) -> None:
        self._state = state
        self._starts = starts
        self._running = running
        self._runners = runners
        self._ended: dict[str, KeeperAttempt] = {}
        self.unsynced = UnsyncedExits()

    def child_ended(self, event: events.ChildEnded, now: float) -> None:
        """Note that a child was reaped."""
        attempt = self._state.by_pid.pop(event.pid, None)
        self._runners.ended(event.pid, attempt)
        if attempt is None:
            # An orphan's end may be the last one of an attempt that has ended.
            for id in self._ended:
                self._state.want(effects.Survey(id))
            return
        if attempt.state == "starting":
            attempt.reason = "could not start: ended before its program ran"
        attempt.ended(event, now)
        self.main_ended(attempt)

    def answered(self, event: events.Answered, now: float) -> None:
        """End the attempt of a runner that has done its task and goes on."""
        attempt = self._state.by_pid.pop(event.pid, None)
        if attempt is None:
            return
        attempt.reason, attempt.result = event.reason, event.result
        attempt.ended(event, now)
        if not self._runners.may_keep(attempt, self._starts.key_after(attempt.id)):
            self._runners.let_go(attempt)
        self.main_ended(attempt)

    def given_back(self, event: events.GivenBack, now: float) -> None:
        """End a guest's attempt, whose process goes on, once that is on record.

        A successor that does not know would find the process, and take it for one that
        has its units still.
        """
        attempt = self._state.attempts.get(event.id)
        if attempt is not None and attempt.is_live:
            attempt.given_back(event.code, event.at)
            attempt.measure(now)
            self._cancel_timers(attempt)
            if attempt.suspended:
                # Its process goes on, and nothing else would continue it.
                self._state.want(effects.SignalProcesses(attempt.id, (SIGCONT,)))
            self._state.want(effects.Record(attempt.exit_entry()))
            self.write(attempt, now)

    def write(self, attempt: KeeperAttempt, now: float) -> None:
        """Have it written that a guest is done with its attempt."""
        self._state.want(effects.Write(attempt.id))

    def written(self, event: events.Written, now: float) -> None:
        """Finish the attempt of a guest, or try later to write that it is done."""
        attempt = self._state.attempts[event.id]
        if event.done:
            self.main_ended(attempt)
        else:
            attempt.looks += 1
            due = now + pause(attempt.looks)
            self._state.timers.set("write", attempt.id, due)

    def main_ended(self, attempt: KeeperAttempt) -> None:
        """Look for other processes of an attempt whose main process is gone."""
        self._ended[attempt.id] = attempt
        # Its end is known: another inspection would find no such process.
        self._state.timers.cancel("unclear", attempt.id)
        self._state.want(effects.Survey(attempt.id))

    def surveyed(self, event: events.Surveyed, now: float) -> None:
        """Finish an attempt of which no process is left, or end the rest of it."""
        attempt = self._ended.get(event.id)
        if attempt is None:
            return
        attempt.output_bytes = event.output_bytes
        if event.empty and event.oom_killed and self._runners.let_go(attempt):
            # The cgroup of a runner that stays would tell this of later attempts, too.
            self._state.want(effects.Survey(attempt.id))
        elif event.empty:
            self._check_memory(attempt, event)
            self._check_output(attempt)
            self._finish(attempt, now)
        elif ("leftovers", event.id) not in self._state.timers:
            self._end_leftovers(attempt, now)

    def _end_leftovers(self, attempt: KeeperAttempt, now: float) -> None:
        self._state.want(effects.Record(attempt.exit_entry()))
        self.unsynced.add(attempt.id)
        plan = StopPlan(now + LEFTOVER_GRACE_S, SIGTERM, None)
        self._running.stop(attempt, plan, now)
        self._state.timers.set("leftovers", attempt.id, now + PAUSES_S[0])

    def look_for_leftovers(self, attempt: KeeperAttempt, now: float) -> None:
        """Look again: orphans of an adopted attempt are not the keeper's children."""
        attempt.looks += 1
        due = now + pause(attempt.looks)
        self._state.timers.set("leftovers", attempt.id, due)
        self._state.want(effects.Survey(attempt.id))

    def _check_output(self, attempt: KeeperAttempt) -> None:
        """Apply the output limit to a job that exceeded it between two checks."""
        limits = attempt.spawning
        if limits.max_output is None or attempt.output_bytes <= limits.max_output:
            return
        if attempt.lost or attempt.reason is None:
            # Also in place of a lost exit: a daemon may still know the exit code.
            attempt.reason = "output limit"
        if limits.own_output:
            size = attempt.offset + limits.max_output
            self._state.want(effects.Truncate(limits.output, size))
            attempt.output_bytes = limits.max_output

    def _check_memory(self, attempt: KeeperAttempt, event: events.Surveyed) -> None:
        """Say that an attempt was killed for want of the memory it may have."""
        failed = attempt.code != 0 and not attempt.lost
        if event.oom_killed and failed and attempt.reason is None:
            attempt.reason = MEMORY_LIMIT

    def _finish(self, attempt: KeeperAttempt, now: float) -> None:
        attempt.finish()
        self._ended.pop(attempt.id, None)
        self._state.live -= 1
        self._cancel_timers(attempt)
        self._state.want(effects.ReleaseAttempt(attempt.id))
        # With many behind it a daemon is not needed yet, and takes several at a time.
        urgent = not self._starts.has_followers(attempt.id, MANY)
        self._state.want(effects.Publish(attempt.exit_entry(), urgent))
        self.unsynced.add(attempt.id)
        self._runners.finished(attempt.id, now)
        self._starts.start_followers(attempt.id)
        if attempt.forgotten and self.forget(attempt.id):
            self._state.want(effects.Record(ForgottenEntry([attempt.id])))

    def _cancel_timers(self, attempt: KeeperAttempt) -> None:
        self._state.timers.cancel_all(_PURPOSES, attempt.id)

    def spawn_failed(self, event: events.SpawnFailed, now: float) -> None:
        """Finish an attempt whose program never ran, or return it."""
        attempt = self._state.attempts[event.id]
        if event.missing and attempt.stop_plan is None:
            self._unbegin(attempt, now)
            self._starts.drop(attempt.id)
            recalled = RecalledEntry(event.id, event.reason, event.missing)
            self._state.want(effects.Tell(recalled))
            return
        if attempt.pid is not None:
            self._state.by_pid.pop(attempt.pid, None)
        self._runners.not_begun(attempt.id, now)
        attempt.reason = event.reason
        attempt.exited_at = event.at
        self._finish(attempt, now)

    def cannot_spawn(self, event: events.CannotSpawn, now: float) -> None:
        """Queue an attempt again that this machine could not start.

        Behind the others: if the attempt itself is the cause, they still start.
        """
        start, attempt = event.start, self._state.attempts[event.start.id]
        if attempt.stop_plan is not None:
            # It was stopped meanwhile.
            self.spawn_failed(events.SpawnFailed(start.id, event.reason, event.at), now)
            return
        self._unbegin(attempt, now)
        self._starts.queue(attempt, start)

    def _unbegin(self, attempt: KeeperAttempt, now: float) -> None:
        """Undo what was done to start an attempt of which nothing ran."""
        self._state.want(effects.Unrecord(attempt.id, attempt.entries()))
        self._runners.not_begun(attempt.id, now)
        if attempt.pid is not None:
            self._state.by_pid.pop(attempt.pid, None)
            self._state.want(effects.ReleaseAttempt(attempt.id))
        attempt.pid = attempt.ticks = None

    def forget(self, id: str) -> bool:
        """Drop an exit that the broker has stored; others are left alone."""
        attempt = self._state.attempts.get(id)
        if attempt is not None and attempt.is_live and attempt.spawning.runner:
            # Its exit was told by a keeper before this one, which could not record it:
            # what was found is a runner that leaves.
            attempt.forgotten = True
        if attempt is None or attempt.state != "exited":
            return False
        del self._state.attempts[id]
        self.unsynced.discard(id)
        return True


class UnsyncedExits:
    """Exits that a power cut would lose, and those that are being synced.

    Most exits are forgotten within milliseconds, once the broker has committed them.
    Those that are kept for longer are synced, all at once and never twice at the same
    time, as a sync may hang with its disk.
    """

    def __init__(self) -> None:
        self._new: set[str] = set()
        self._syncing: set[str] | None = None

    @property
    def are_due(self) -> bool:
        """Tell whether a sync must be planned."""
        return bool(self._new) and self._syncing is None

    def add(self, id: str) -> None:
        """Have an exit synced that is on record."""
        self._new.add(id)

    def discard(self, id: str) -> None:
        """Leave out an exit that is stored elsewhere."""
        self._new.discard(id)

    def begin(self) -> bool:
        """Tell whether there is something to sync, and note that this begins."""
        if not self.are_due:
            return False
        self._syncing, self._new = self._new, set()
        return True

    def end(self, *, done: bool) -> None:
        """Note the result of a sync; after a failure its exits are due again."""
        if not done:
            self._new |= self._syncing or set()
        self._syncing = None
