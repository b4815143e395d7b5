"""Which attempt each process belongs to, for all attempts in one pass.

The keeper asks for the processes of one attempt and must not miss any. A worker that
measures what all attempts use asks every second, by the same traits: the main process,
its session, descent, the cgroup and the marker.
"""

from __future__ import annotations

import os

from grass.keeper.process_table import (
    MainProcess,
    ProcessTable,
    Stat,
    all_stats,
    read_stat,
)


class ProcessOwners(ProcessTable):
    """The processes of all attempts, by pid."""

    def close(self) -> None:
        """Close the list of the keeper's children."""
        if self._children is not None:
            os.close(self._children)
            self._children = None

    def all_owners(self) -> dict[int, str]:
        """Read all processes, and return the attempt of each that has one.

        An orphan that several attempts may have started is left out.
        """
        stats = all_stats()
        mains = self._mains_by_pid()
        known: dict[int, str | None] = dict.fromkeys(self._never_members(stats))
        for stat in stats.values():
            self._find(stat, stats, mains, known)
        return {
            pid: owner
            for pid, owner in known.items()
            if owner is not None and not stats[pid].dead
        }

    def owner_of(self, pid: int) -> str | None:
        """Return the attempt of one process, by it and its parents as they are now."""
        stats: dict[int, Stat] = {}
        above = pid
        while above > 1 and above != self._keeper and above not in stats:
            stat = read_stat(above)
            if stat is None:
                break
            stats[above] = stat
            above = stat.ppid
        if pid not in stats:
            return None
        known: dict[int, str | None] = dict.fromkeys(self.daemons)
        return self._find(stats[pid], stats, self._mains_by_pid(), known)

    def _mains_by_pid(self) -> dict[int, MainProcess]:
        return {main.pid: main for main in self.mains.values()}

    def _find(
        self,
        stat: Stat,
        stats: dict[int, Stat],
        mains: dict[int, MainProcess],
        known: dict[int, str | None],
    ) -> str | None:
        """Follow the parents up to one whose owner is known."""
        chain: list[int] = []
        owner: str | None = None
        above: Stat | None = stat
        while above is not None and owner is None and above.pid not in chain:
            if above.pid in known:
                owner = known[above.pid]
                break
            chain.append(above.pid)
            owner = self._by_itself(above, stats, mains)
            above = stats.get(above.ppid)
        known.update(dict.fromkeys(chain, owner))
        return owner

    def _by_itself(
        self, stat: Stat, stats: dict[int, Stat], mains: dict[int, MainProcess]
    ) -> str | None:
        """Return whose process this is by its own traits; None: its parent's."""
        main = mains.get(stat.pid)
        if main is not None and stat.ticks == main.ticks:
            return main.id
        main = mains.get(stat.session)
        if main is not None and self._is_in_session(main, stat, stats):
            return main.id if stat.ticks >= main.ticks else None
        if stat.ppid > 1 and stat.ppid != self._keeper and stat.ppid in stats:
            return None
        # An orphan. Those that are older than every attempt are not inspected.
        if all(stat.ticks < main.ticks for main in mains.values()):
            return None
        return self._owner(stat)
