"""Processes that a dead keeper left: found, watched, and asked how they ended.

They are nobody's children here, so the kernel tells of their end by a descriptor only.
What cannot be told now, as there are no descriptors left, is unclear and asked again:
only a process that is known to be gone is missing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper.core import effects, events
from grass.keeper.system import pidfd
from grass.keeper.system.clocks import utc_us
from grass.keeper.system.process_tree import all_stats, marker_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.keeper.system.poller import Waiting
    from grass.keeper.system.process_tree import Forest, Stat

    Feed = Callable[[events.Event], None]


class Adopting:
    """The processes that this keeper adopted."""

    def __init__(self, forest: Forest) -> None:
        """Begin with none; `connect` must follow."""
        self._forest = forest
        self._descriptors: dict[str, int] = {}

    def connect(self, waiting: Waiting, feed: Feed) -> None:
        """Say how to wait for a descriptor and whom to tell what came of it."""
        self._waiting = waiting
        self._feed = feed

    def adopt(self, effect: effects.Adopt) -> events.Event:
        """Watch a process that was another keeper's child."""
        id = effect.id
        try:
            descriptor = pidfd.open_checked(effect.pid, effect.ticks)
            if descriptor is None:
                return events.Missing(id, utc_us())
            self._watch(id, descriptor)
        except OSError:
            return events.AdoptedUnclear(id, False, utc_us())
        main = self._forest.mains[id]
        main.pid, main.ticks, main.alive = effect.pid, effect.ticks, True
        return events.Adopted(id, effect.pid, effect.ticks, utc_us())

    def _watch(self, id: str, descriptor: int) -> None:
        try:
            self._waiting.watch(descriptor, lambda: self._feed(self._ask(id)))
        except OSError:
            os.close(descriptor)
            raise
        self._descriptors[id] = descriptor

    def search(self, effect: effects.Search) -> events.Event:
        """Find a process whose start was recorded but not its pid."""
        try:
            carriers = _carriers(effect.id)
        except OSError:
            return events.AdoptedUnclear(effect.id, False, utc_us())
        if not carriers:
            return events.Missing(effect.id, utc_us())
        return self.adopt(effects.Adopt(effect.id, carriers[0].pid, carriers[0].ticks))

    def inspect(self, effect: effects.Inspect) -> events.Event:
        """Ask again about a process that was unclear."""
        if effect.id in self._descriptors:
            return self._ask(effect.id)
        main = self._forest.mains[effect.id]
        if not main.pid:
            return self.search(effects.Search(effect.id))
        return self.adopt(effects.Adopt(effect.id, main.pid, main.ticks))

    def _ask(self, id: str) -> events.Event:
        descriptor = self._descriptors[id]
        self._waiting.unwatch(descriptor)
        try:
            status = pidfd.exit_status(descriptor)
        except pidfd.NotReaped:
            # The kernel hangs up when its parent collects it, be that soon or late; it
            # is asked again by and by in any case.
            with suppress(OSError):
                again = lambda: self._feed(self._ask(id))  # noqa: E731
                self._waiting.watch_for_end(descriptor, again)
            return events.AdoptedUnclear(id, True, utc_us())
        self._forest.mains[id].alive = False
        os.close(self._descriptors.pop(id))
        return events.AdoptedEnded(id, status, utc_us())

    def release(self, id: str) -> None:
        """Drop the descriptor of an attempt, if there is one."""
        descriptor = self._descriptors.pop(id, None)
        if descriptor is not None:
            self._waiting.unwatch(descriptor)
            os.close(descriptor)


def _carriers(id: str) -> list[Stat]:
    """Find who carries an attempt's marker, the likeliest main process first."""
    found = [stat for stat in all_stats().values() if marker_of(stat.pid) == id]
    return sorted(found, key=lambda stat: (stat.session != stat.pid, stat.ticks))
