"""Attempts that run: their cgroup, limits, suspension, and how they are stopped.

What always holds: a stop that has begun ends with SIGKILL, repeated until no process is
left; of several causes to stop, the first is the reason.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from grass.keeper.core import effects
from grass.keeper.core.attempt import StopPlan
from grass.keeper.core.deadlines import PAUSES_S, pause
from grass.keeper.exit_reasons import TIME_LIMIT
from grass.keeper.protocol import (
    EnclosedEntry,
    SuspendedEntry,
    WarnedEntry,
)

if TYPE_CHECKING:
    from grass.keeper.core import keeper_events as events
    from grass.keeper.core.attempt import KeeperAttempt
    from grass.keeper.core.keeper_state import KeeperState
    from grass.keeper.core.runners import Runners

SIGTERM, SIGCONT, SIGSTOP = 15, 18, 19
# The limits of a younger job are not watched: most jobs never need that.
YOUNG_S = 0.1
ENCLOSE_S = 0.2
"""A job that is not young any more gets a cgroup after so long. That takes some ten
milliseconds, as all processes of the machine are looked at."""
OUTPUT_BYTES_PER_S = 1 << 30

Waiting = deque[tuple[float, str]]
"""When something is due for attempts, the earliest first."""


class RunningAttempts:
    """What is done about attempts that run."""

    def __init__(self, state: KeeperState, runners: Runners) -> None:
        self._state = state
        self._runners = runners
        self._young: Waiting = deque()
        self._loose: Waiting = deque()

    def forked(self, event: events.Forked, now: float) -> None:
        """Note a child that prepares the start."""
        attempt = self._state.attempts[event.id]
        attempt.pid, attempt.ticks = event.pid, event.ticks
        self._state.by_pid[event.pid] = attempt
        self._runners.forked(event.id)
        self._state.want(effects.Record(attempt.forked_entry()))
        self._repeat_stop(attempt, now)

    def spawned(self, event: events.Spawned, now: float) -> None:
        """Note a program that runs."""
        state, attempt = self._state, self._state.attempts[event.id]
        attempt.began(event, now)
        state.by_pid[event.pid] = attempt
        self._runners.began(event)
        state.want(effects.Publish(attempt.started_entry(), urgent=False))
        limits = attempt.spawning
        if event.cgroup is not None:
            state.want(effects.Record(EnclosedEntry(event.id, event.cgroup)))
        elif limits.memory_max or limits.cpu_max or limits.runner:
            # What it allocates before is not counted. A runner is moved once for all
            # of its attempts, most of which are young.
            self._enclose(attempt)
        self._await(self._young, "young", now + YOUNG_S, event.id)
        limit = limits.time_limit
        if limit is not None and limit <= YOUNG_S:
            state.timers.set("time limit", event.id, now + limit)
        if attempt.suspended:
            self.suspend(attempt, now)
        self._repeat_stop(attempt, now)

    def _repeat_stop(self, attempt: KeeperAttempt, now: float) -> None:
        """Repeat the first signal of a stop that came before there was a process."""
        plan = attempt.stop_plan
        if plan is not None and now < plan.kill_at:
            signals = (plan.signal, SIGCONT)
            self._state.want(effects.SignalProcesses(attempt.id, signals))
        elif plan is not None:
            self.kill(attempt, now)

    def young_are_due(self, now: float) -> None:
        """Begin to watch the limits of those that still run."""
        for attempt in self._taken(self._young, "young", now):
            if attempt.spawning.runner:
                self._state.want(effects.NameOutput(attempt.id))
            if attempt.cgroup is None:
                self._await(self._loose, "enclose", now + ENCLOSE_S, attempt.id)
            self.watch_limits(attempt, now)

    def enclosing_is_due(self, now: float) -> None:
        """Give those that still run a cgroup."""
        for attempt in self._taken(self._loose, "enclose", now):
            self._enclose(attempt)

    def _await(self, waiting: Waiting, purpose: str, due: float, id: str) -> None:
        waiting.append((due, id))
        if len(waiting) == 1:
            self._state.timers.set(purpose, "", due)

    def _taken(self, waiting: Waiting, purpose: str, now: float) -> list[KeeperAttempt]:
        """Take out those whose time has come, and return which of them still run."""
        taken = []
        while waiting:
            due, id = waiting[0]
            attempt = self._state.attempts.get(id)
            if attempt is not None and attempt.state == "running":
                if due > now:
                    # Those that have ended before are passed over: a timer for each
                    # would cost more than a short task itself.
                    self._state.timers.set(purpose, "", due)
                    break
                taken.append(attempt)
            waiting.popleft()
        return taken

    def _enclose(self, attempt: KeeperAttempt) -> None:
        limits = attempt.spawning
        if attempt.cgroup is None:
            limited = effects.Enclose(attempt.id, limits.memory_max, limits.cpu_max)
            self._state.want(limited)

    def enclosed(self, event: events.Enclosed, now: float) -> None:
        """Note the cgroup of an attempt."""
        self._state.attempts[event.id].cgroup = event.cgroup
        self._state.want(effects.Record(EnclosedEntry(event.id, event.cgroup)))

    def suspend(self, attempt: KeeperAttempt, now: float) -> None:
        """Suspend its processes, and soon after those that were just being forked."""
        attempt.suspended = True
        self._record_suspended(attempt)
        if attempt.state == "running" and attempt.stop_plan is None:
            self._state.want(effects.SignalProcesses(attempt.id, (SIGSTOP,)))
            self._state.timers.set("suspend", attempt.id, now + PAUSES_S[0])

    def suspend_again(self, attempt: KeeperAttempt, now: float) -> None:
        """Suspend the processes that were being forked at the first time."""
        if attempt.stop_plan is None:
            self._state.want(effects.SignalProcesses(attempt.id, (SIGSTOP,)))

    def resume(self, attempt: KeeperAttempt) -> None:
        """Continue its processes."""
        attempt.suspended = False
        self._record_suspended(attempt)
        self._state.timers.cancel("suspend", attempt.id)
        if attempt.state == "running":
            self._state.want(effects.SignalProcesses(attempt.id, (SIGCONT,)))

    def _record_suspended(self, attempt: KeeperAttempt) -> None:
        if attempt.state not in ("waiting", "due"):
            entry = SuspendedEntry(attempt.id, attempt.suspended)
            self._state.want(effects.Record(entry))

    def stop(self, attempt: KeeperAttempt, plan: StopPlan, now: float) -> None:
        """Begin to stop an attempt, or hasten a stop that has begun."""
        if attempt.stop_plan is not None:
            if plan.kill_at >= attempt.stop_plan.kill_at:
                return
            attempt.stop_plan.kill_at = plan.kill_at
        else:
            attempt.stop_plan = plan
            self._runners.let_go(attempt)
            if plan.kill_at > now:
                signals = (plan.signal, SIGCONT)
                self._state.want(effects.SignalProcesses(attempt.id, signals))
        entry = attempt.stopping_entry(attempt.stop_plan)
        note = effects.Record if attempt.state == "ended" else effects.Publish
        self._state.want(note(entry))
        if plan.kill_at > now:
            self._state.timers.set("kill", attempt.id, plan.kill_at)
        else:
            self.kill(attempt, now)

    def kill(self, attempt: KeeperAttempt, now: float) -> None:
        """Kill all processes of an attempt that is being stopped, and again soon."""
        plan = attempt.stop_plan
        if plan is not None:
            self._state.want(effects.KillProcesses(attempt.id))
            self._state.timers.set("kill", attempt.id, now + pause(plan.kills))
            plan.kills += 1

    def watch_limits(self, attempt: KeeperAttempt, now: float) -> None:
        """Set the deadlines of its limits on time and output."""
        limits = attempt.spawning
        if limits.time_limit is not None:
            due = attempt.since + limits.time_limit
            self._state.timers.set("time limit", attempt.id, due)
            if limits.limit_signal is not None and not attempt.warned:
                warned_at = due - limits.limit_signal_before
                self._state.timers.set("warning", attempt.id, warned_at)
        if limits.max_output is not None:
            self._watch_output(attempt, limits.max_output, now)

    def _watch_output(self, attempt: KeeperAttempt, left: int, now: float) -> None:
        wait_s = max(0.25, min(10.0, left / OUTPUT_BYTES_PER_S))
        self._state.timers.set("output", attempt.id, now + wait_s)

    def measure_output(self, attempt: KeeperAttempt, now: float) -> None:
        """Have the output measured."""
        self._state.want(effects.Measure(attempt.id))

    def measured(self, event: events.OutputMeasured, now: float) -> None:
        """Stop an attempt that wrote too much, or measure again later."""
        attempt = self._state.attempts.get(event.id)
        limit = None if attempt is None else attempt.spawning.max_output
        if attempt is None or attempt.state != "running" or limit is None:
            return
        if event.written > limit:
            self._limit_reached(attempt, now, "output limit")
        else:
            self._watch_output(attempt, limit - event.written, now)

    def warn(self, attempt: KeeperAttempt, now: float) -> None:
        """Send the signal that comes before the time limit, once."""
        number = attempt.spawning.limit_signal
        stopping = attempt.state != "running" or attempt.stop_plan is not None
        if number is None or attempt.warned or stopping:
            return
        attempt.warned = True
        self._state.want(effects.Record(WarnedEntry(attempt.id)))
        self._state.want(effects.SignalHandlers(attempt.id, number))

    def time_is_up(self, attempt: KeeperAttempt, now: float) -> None:
        """Stop an attempt that has reached its time limit."""
        self._limit_reached(attempt, now, TIME_LIMIT)

    def _limit_reached(self, attempt: KeeperAttempt, now: float, reason: str) -> None:
        if attempt.state == "running":
            plan = StopPlan(now + attempt.spawning.grace, SIGTERM, reason)
            self.stop(attempt, plan, now)
