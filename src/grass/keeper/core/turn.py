"""The order of a keeper's turn, which no crash may find broken.

What has happened is told to the core. Then an attempt's record is written right before
its spawn, all records are written before anything is sent, and each connection is sent
to at most once before and once after the spawns. The loop around real files and sockets
and the simulation run this very order; `Outside` is all that either must provide.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from grass.keeper.core import effects, events

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from grass.keeper.core.keeper_core import KeeperCore

    Action = Callable[[Any], events.Event | None]

    class Outside(Protocol):
        """What lies around the order: files, sockets, processes and clocks."""

        @property
        def now(self) -> float:
            """Tell the time since boot, with sleep, in seconds."""

        def record(self, entry: events.Entry) -> None:
            """Have an entry written with the next flush."""

        def flush_records(self) -> str | None:
            """Write the entries; tell why the records are not complete, if so."""

        def send(self) -> None:
            """Send all that waits to be sent."""

        def send_unless_held(self) -> None:
            """Send the same, unless it may wait for more."""

        def spawn(self, spec: events.Spec) -> events.Event:
            """Start an attempt's process, and tell what came of it."""

        def tell(self, event: events.Event) -> None:
            """Hand the event back to `feed`, with whatever care is due."""


class Turn:
    """Ties the core to what is done for it, in the order that is safe."""

    def __init__(
        self, core: KeeperCore, outside: Outside, actions: Mapping[type, Action]
    ) -> None:
        self._core = core
        self._outside = outside
        self._starts: deque[events.Spec] = deque()
        self._behind = False
        self._actions: dict[type, Action] = {
            effects.Record: lambda effect: outside.record(effect.entry),
            effects.Spawn: lambda effect: self._starts.append(effect.spec),
            **actions,
        }

    def feed(self, event: events.Event) -> None:
        """Tell the core, do what it wants, and tell it what came of that."""
        waiting = deque([event])
        while waiting:
            for effect in self._core.step(waiting.popleft(), self._outside.now):
                answer = self._actions[type(effect)](effect)
                if answer is not None:
                    waiting.append(answer)

    def finish(self) -> None:
        """Write, answer, spawn, write and answer again."""
        if self._starts:
            written = self._write()
            self._outside.send()
            if written and self._core.may_start:
                self._start_all()
        self._write()
        if self._starts:
            # It may all work again by now, but those in line must not wait for news.
            self._core.start_later(self._outside.now)
        self._outside.send_unless_held()

    def _start_all(self) -> None:
        """Start who is in line, up to one that the machine cannot start now."""
        while self._starts:
            spec = self._starts[0]
            # Who was stopped or recalled meanwhile is in line no more.
            due = self._core.is_due(spec)
            if due and not self._recorded(spec):
                return
            self._starts.popleft()
            if due:
                self._outside.tell(self._outside.spawn(spec))
            if not self._core.may_start:
                return

    def _recorded(self, spec: events.Spec) -> bool:
        for entry in self._core.spawning(spec.id):
            self._outside.record(entry)
        # One write for this attempt and for the outcome of the one before it.
        if self._write():
            return True
        self._core.put_off(spec)
        return False

    def _write(self) -> bool:
        why = self._outside.flush_records()
        if why is not None or self._behind:
            self._behind = why is not None
            self.feed(events.Flushed(why))
        return why is None
