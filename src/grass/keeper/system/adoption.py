"""Processes that an earlier keeper left: found, watched, and how they ended.

They are not this keeper's children, so only a pidfd tells that they ended. A process
that cannot be inspected now, for example without free descriptors, is unclear and is
inspected again: only a process that is known to be gone is missing.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper import pidfd
from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.process_table import all_stats, marker_of
from grass.keeper.system.poller import utc_us

if TYPE_CHECKING:
    from grass.keeper.process_table import ProcessTable, Stat
    from grass.keeper.protocol import StartVerb
    from grass.keeper.system.poller import Feed, Poller


class AdoptedProcesses:
    """The processes that this keeper adopted."""

    def __init__(self, table: ProcessTable) -> None:
        """Begin with none; `connect` must follow."""
        self._table = table
        self._descriptors: dict[str, int] = {}

    def connect(self, poller: Poller, feed: Feed) -> None:
        """Set how to wait for a descriptor and where later events go."""
        self._poller = poller
        self._feed = feed

    def adopt(self, effect: effects.Adopt) -> events.KeeperEvent:
        """Watch a process that an earlier keeper started."""
        id = effect.id
        try:
            descriptor = pidfd.open_checked(effect.pid, effect.ticks)
            if descriptor is None:
                return events.Missing(id, utc_us())
            self._watch(id, descriptor)
        except OSError:
            return events.AdoptedUnclear(id, False, utc_us())
        main = self._table.watched(id)
        main.pid, main.ticks, main.alive = effect.pid, effect.ticks, True
        return events.Adopted(id, effect.pid, effect.ticks, utc_us())

    def begin(self, start: StartVerb) -> events.KeeperEvent:
        """Watch the process of a guest, from the start of its attempt on."""
        pid, ticks = start.guest or 0, start.guest_ticks
        self._table.add_guest(start.id, pid, ticks)
        return self.adopt(effects.Adopt(start.id, pid, ticks))

    def _watch(self, id: str, descriptor: int) -> None:
        try:
            self._poller.watch(descriptor, lambda: self._feed(self._end_of(id)))
        except OSError:
            os.close(descriptor)
            raise
        self._descriptors[id] = descriptor

    def search(self, effect: effects.Search) -> events.KeeperEvent:
        """Find a process whose start is on record but not its pid."""
        try:
            marked = _marked(effect.id)
        except OSError:
            return events.AdoptedUnclear(effect.id, False, utc_us())
        if not marked:
            return events.Missing(effect.id, utc_us())
        return self.adopt(effects.Adopt(effect.id, marked[0].pid, marked[0].ticks))

    def inspect(self, effect: effects.Inspect) -> events.KeeperEvent:
        """Look again at a process that was unclear."""
        if effect.id in self._descriptors:
            return self._end_of(effect.id)
        main = self._table.watched(effect.id)
        if not main.pid:
            return self.search(effects.Search(effect.id))
        return self.adopt(effects.Adopt(effect.id, main.pid, main.ticks))

    def _end_of(self, id: str) -> events.KeeperEvent:
        descriptor = self._descriptors[id]
        self._poller.unwatch(descriptor)
        try:
            status = pidfd.exit_status(descriptor)
        except pidfd.NotReaped:
            # The kernel hangs up when its parent reaps it, soon or late; the core also
            # inspects it again from time to time.
            with suppress(OSError):
                again = lambda: self._feed(self._end_of(id))  # noqa: E731
                self._poller.watch_for_end(descriptor, again)
            return events.AdoptedUnclear(id, True, utc_us())
        self._table.watched(id).alive = False
        os.close(self._descriptors.pop(id))
        return events.AdoptedEnded(id, status, utc_us())

    def release(self, id: str) -> None:
        """Drop the descriptor of an attempt, if there is one."""
        descriptor = self._descriptors.pop(id, None)
        if descriptor is not None:
            self._poller.unwatch(descriptor)
            os.close(descriptor)


def _marked(id: str) -> list[Stat]:
    """Return the processes with an attempt's marker, the likeliest main one first."""
    found = [stat for stat in all_stats().values() if marker_of(stat.pid) == id]
    return sorted(found, key=lambda stat: (stat.session != stat.pid, stat.ticks))
