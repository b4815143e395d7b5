"""The order of writes, spawns and sends in a keeper's turn, safe against any crash.

First the core handles what has happened. Then an attempt's record is written right
before its spawn, all records are written before anything is sent, and each connection
is sent to at most once before and once after the spawns; before tasks that runners wait
for it is not. The real loop and the simulation both run this code; `TurnShell` is what
either must provide.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from grass.keeper.core.keeper_core import KeeperCore
    from grass.keeper.protocol import Entry, StartVerb

    Action = Callable[[Any], events.KeeperEvent | None]

    class TurnShell(Protocol):
        """Files, sockets, processes and clocks."""

        @property
        def now(self) -> float:
            """Return the seconds since boot, the time the machine slept included."""

        def record(self, entry: Entry) -> None:
            """Queue an entry for the next flush."""

        def flush_records(self) -> str | None:
            """Write the entries; return why the records are not complete, if so."""

        def send(self) -> None:
            """Send all that is queued."""

        def send_unless_held(self) -> None:
            """Send the same, unless it may wait for more entries."""

        def spawn(self, start: StartVerb) -> events.KeeperEvent:
            """Start an attempt's process and return the result."""

        def hand_over(self, start: StartVerb, runner: int) -> events.KeeperEvent:
            """Send a task to an idle runner, or to a new one if that is gone."""

        def spawn_result(self, event: events.KeeperEvent) -> None:
            """Pass the result to `feed`; a defect there must not end the turn."""


class KeeperTurn:
    """Runs the core's effects in the order that is safe."""

    def __init__(
        self, core: KeeperCore, shell: TurnShell, actions: Mapping[type, Action]
    ) -> None:
        self._core = core
        self._shell = shell
        self._spawns: deque[StartVerb] = deque()
        self._incomplete = False
        self._actions: dict[type, Action] = {
            effects.Record: lambda effect: shell.record(effect.entry),
            effects.Spawn: lambda effect: self._spawns.append(effect.start),
            effects.Write: lambda effect: events.Written(
                effect.id, shell.flush_records() is None
            ),
            **actions,
        }

    def feed(self, event: events.KeeperEvent) -> None:
        """Run the core on an event, carry out the effects, and feed their answers."""
        step, actions, waiting = self._core.step, self._actions, [event]
        # Answers are appended while it is walked through.
        for one in waiting:
            for effect in step(one, self._shell.now):
                answer = actions[type(effect)](effect)
                if answer is not None:
                    waiting.append(answer)

    def finish(self) -> None:
        """Write, send, spawn, write and send again."""
        core, shell = self._core, self._shell
        ready = not self._spawns or self._are_quick() or self._sent()
        if self._spawns and ready and core.start_failures.may_try:
            self._spawn_all()
        self._write()
        if self._spawns:
            # Starts may work again by now, and these must not wait for another event.
            core.start_failures.try_again(shell.now)
        shell.send_unless_held()

    def _are_quick(self) -> bool:
        """Tell whether runners wait for all that is to start.

        To hand a task over takes less time than to tell a daemon of the exit before
        it, and what is recorded for it is written together with that exit.
        """
        return all(map(self._core.runners.await_task, self._spawns))

    def _sent(self) -> bool:
        """Write and send what is there before programs are started."""
        written = self._write()
        self._shell.send()
        return written

    def _spawn_all(self) -> None:
        """Spawn all that are due, up to one that the machine cannot start now."""
        core = self._core
        while self._spawns:
            start = self._spawns[0]
            # An attempt that was stopped or recalled meanwhile is not due any more.
            due = core.starts.is_due(start)
            if due and not self._recorded(start):
                return
            self._spawns.popleft()
            if due:
                self._shell.spawn_result(self._begun(start))
            if not core.start_failures.may_try:
                return

    def _begun(self, start: StartVerb) -> events.KeeperEvent:
        runner = self._core.runners.chosen(start.id)
        if runner is None:
            return self._shell.spawn(start)
        return self._shell.hand_over(start, runner)

    def _recorded(self, start: StartVerb) -> bool:
        for entry in self._core.starts.begin(start.id):
            self._shell.record(entry)
        # One write for this attempt and for the result of the spawn before it.
        if self._write():
            return True
        self._core.starts.postpone(start, self._shell.now)
        return False

    def _write(self) -> bool:
        why = self._shell.flush_records()
        if why is not None or self._incomplete:
            self._incomplete = why is not None
            self.feed(events.Flushed(why))
        return why is None
