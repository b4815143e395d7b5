"""Leases: until when attempts may live without a word from the daemon.

A worker that is to end its jobs when it is cut off renews the lease with every answer
of its broker. A lease is of one cluster and for its attempts only: another broker that
this machine works for now can neither renew nor end it. The time is of the boot clock,
so it goes on while the machine sleeps, and it is on record, so that a successor keeps
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grass.keeper.core.events import Entry

CUT_OFF = "cut off from the broker"
LONGEST_SLEEP_S = 1.0
"""While there is a lease the clock is looked at this often: a machine that slept
through its end must notice soon after it wakes."""


def cluster_of(id: str) -> str:
    """Name the cluster of an attempt, with which its id begins."""
    head, dot, _ = id.partition(".")
    return head if dot else ""


class Lease:
    """One deadline for all attempts of a cluster."""

    def __init__(self, cluster: str, until: float) -> None:
        self.cluster = cluster
        self.until = until
        self.over = False

    def runs_out(self, now: float) -> bool:
        """Tell, once, that the time has come."""
        if self.over or now < self.until:
            return False
        self.over = True
        return True


class Leases:
    """The leases by cluster; who has none lives without end."""

    def __init__(self) -> None:
        self._kept: dict[str, Lease] = {}

    def set(self, cluster: str, until: float | None) -> None:
        """Let a cluster's attempts live until then; None: without end."""
        if until is None:
            self._kept.pop(cluster, None)
        else:
            self._kept[cluster] = Lease(cluster, until)

    @property
    def watched(self) -> bool:
        """Tell whether there is one: it may run out, or what it ended is still dying.

        Both go on while the machine sleeps.
        """
        return bool(self._kept)

    def untils(self) -> dict[str, float]:
        """Give the time of each cluster that has one."""
        return {lease.cluster: lease.until for lease in self._kept.values()}

    def is_over(self, id: str) -> bool:
        """Tell whether an attempt may not live any more."""
        lease = self._kept.get(cluster_of(id))
        return lease is not None and lease.over

    def run_out(self, now: float) -> list[Lease]:
        """Give, once, those whose time has come."""
        if not self._kept:
            return []
        return [lease for lease in self._kept.values() if lease.runs_out(now)]

    def entries(self) -> list[Entry]:
        """Give what must be on record."""
        return [entry(*one) for one in self.untils().items()]

    def restore(self, entries: list[Entry]) -> None:
        """Take over what a predecessor had on record."""
        for one in entries:
            if one.get("e") == "lease":
                self.set(one.get("cluster", ""), one["until"])


def entry(cluster: str, until: float | None) -> Entry:
    """Give the note of a lease."""
    return {"e": "lease", "cluster": cluster, "until": until}
