"""Runners: warm processes that run the attempts of tasks one after another.

How it works. The attempt of a task begins as any other: its record, then a process.
That process, a runner, has a *line* to the keeper. When its task is done it answers on
the line, and the answer ends the attempt as the exit of a process would: the keeper
looks whether anything of the attempt is left, of which the runner itself is no part,
and publishes the exit. Then the runner is idle. The next attempt with its key is handed
to it: recorded with its pid first, sent after that.

Everything else is the end of an ordinary process. Before an attempt is stopped, and
when anything of it is left, the line is *hung up*: from then on the runner is a process
of the attempt like any other. A runner whose line has ended, also because its keeper
died, and one that is not as it was before its task exits with the code of the task
instead of answering. So there is one way in which attempts end, and a successor adopts
a runner as it adopts any process.

A runner is not on record, its attempts are. What was recorded with the pid of a runner
and not as started may never have reached it; its exit code is then of the attempt
before. Such a code is not taken: see `Takeover.adopted`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from grass.keeper.core import effects

if TYPE_CHECKING:
    from grass.keeper.core.attempt import KeeperAttempt
    from grass.keeper.core.keeper_events import Spawned
    from grass.keeper.core.keeper_state import KeeperState
    from grass.keeper.protocol import StartVerb

IDLE_S = 60.0
"""How long a runner waits for its next attempt."""
HANDED_ON_S = 1.0
"""How long one waits that may only be handed on to a follower."""
MOST_IDLE = 4
"""How many wait at once, unless the shell knows the number of cores."""
_TIMER = ("runners", "")


class Runner:
    """A process that runs one attempt at a time, or none."""

    __slots__ = ("keep", "key", "leaves_at", "pid", "ticks")

    def __init__(self, key: str) -> None:
        self.key = key
        self.keep = True
        """Whether it may wait for an attempt that is not there yet."""
        self.pid: int | None = None
        self.ticks: int | None = None
        self.leaves_at = 0.0


class Runners:
    """The runners whose lines are open."""

    def __init__(self, state: KeeperState) -> None:
        self._state = state
        self._busy: dict[str, Runner] = {}
        """By the attempt that each runs or is to run."""
        self._idle: deque[Runner] = deque()
        """In the order in which they became idle."""
        self.most_idle = MOST_IDLE
        self.records_work = True
        """Whether exits can be recorded. A successor that does not know of an exit
        takes a runner that is there still for one that runs its task."""

    def begin(self, start: StartVerb, attempt: KeeperAttempt) -> None:
        """Choose the runner of a task that is to begin: an idle one, or a new one."""
        task = start.task
        if task is None:
            return
        runner = self._taken(task.key) or Runner(task.key)
        runner.keep = task.keep
        self._busy[start.id] = runner
        attempt.pid, attempt.ticks = runner.pid, runner.ticks

    def _taken(self, key: str) -> Runner | None:
        # The one that was used last: the others can leave.
        for runner in reversed(self._idle):
            if runner.key == key:
                self._idle.remove(runner)
                return runner
        return None

    def await_task(self, start: StartVerb) -> bool:
        """Tell whether a start is of a task for which a runner waits."""
        task = start.task
        return task is not None and any(one.key == task.key for one in self._idle)

    def chosen(self, id: str) -> int | None:
        """Return the pid of the idle runner that an attempt is to be handed to."""
        runner = self._busy.get(id)
        return None if runner is None else runner.pid

    def forked(self, id: str) -> None:
        """Note that a child prepares the start of a new runner."""
        if id in self._busy:
            self._busy[id].pid = None

    def began(self, event: Spawned) -> None:
        """Note the process that runs a task; the one that was chosen may be gone."""
        runner = self._busy.get(event.id)
        if runner is not None:
            runner.pid, runner.ticks = event.pid, event.ticks

    def not_begun(self, id: str, now: float) -> None:
        """Note that an attempt could not begin: its runner is idle again."""
        runner = self._busy.pop(id, None)
        if runner is not None and runner.pid is not None:
            self._rest(runner, now)

    def may_keep(self, attempt: KeeperAttempt, follower: str | None) -> bool:
        """Tell whether the runner that has answered may run other attempts.

        `follower` is the key of the attempt that waits for this one. A runner that is
        suspended would not begin.
        """
        runner = self._busy.get(attempt.id)
        if runner is None or attempt.suspended or attempt.stop_plan is not None:
            return False
        if not self.records_work:
            return False
        return runner.keep or runner.key == follower

    def let_go(self, attempt: KeeperAttempt) -> bool:
        """Make the runner of an attempt, if it has one, an ordinary process of it."""
        if self._busy.pop(attempt.id, None) is None or attempt.pid is None:
            return False
        self._state.want(effects.HangUp(attempt.pid))
        return True

    def finished(self, id: str, now: float) -> None:
        """Let the runner of an attempt that is over wait for the next."""
        runner = self._busy.pop(id, None)
        if runner is not None:
            self._rest(runner, now)

    def ended(self, pid: int, attempt: KeeperAttempt | None) -> None:
        """Note that a child is gone: it may have been a runner."""
        if attempt is not None:
            self._busy.pop(attempt.id, None)
            return
        for runner in self._idle:
            if runner.pid == pid:
                self._idle.remove(runner)
                return

    def _rest(self, runner: Runner, now: float) -> None:
        runner.leaves_at = now + (IDLE_S if runner.keep else HANDED_ON_S)
        self._idle.append(runner)
        if len(self._idle) > self.most_idle:
            self._dismiss(self._idle[0])
        if _TIMER not in self._state.timers or not runner.keep:
            self._set_timer()

    def idle_are_due(self, now: float) -> None:
        """Have those leave that have waited long enough."""
        for runner in [one for one in self._idle if one.leaves_at <= now]:
            self._dismiss(runner, taken=True)
        self._set_timer()

    def dismiss_idle(self) -> None:
        """Have all leave that are idle: the machine is short of something."""
        while self._idle:
            self._dismiss(self._idle[0])

    def _dismiss(self, runner: Runner, *, taken: bool = False) -> None:
        self._idle.remove(runner)
        assert runner.pid is not None
        self._state.want(effects.HangUp(runner.pid, taken))

    def _set_timer(self) -> None:
        if self._idle:
            first = min(runner.leaves_at for runner in self._idle)
            self._state.timers.set(*_TIMER, first)
