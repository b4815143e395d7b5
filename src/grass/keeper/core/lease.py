"""Leases: until when attempts may run without a renewal by the daemon.

A worker that ends its jobs when it is cut off renews the lease with every answer of its
broker. A lease is for the attempts of one cluster: another broker that this machine
works for now can neither renew nor end it. The time is of the boot clock, so it goes on
while the machine sleeps, and it is on record, so that a successor keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grass.keeper.protocol import LeaseEntry, cluster_of

if TYPE_CHECKING:
    from grass.keeper.protocol import Entry

LONGEST_SLEEP_S = 1.0
"""While there is a lease the clock is read this often: a machine that slept past the
end of a lease must notice soon after it wakes."""


class ClusterLease:
    """One deadline for all attempts of a cluster."""

    def __init__(self, cluster: str, until: float) -> None:
        self.cluster = cluster
        self.until = until
        self.over = False

    def runs_out(self, now: float) -> bool:
        """Tell, once, that the lease has run out."""
        if self.over or now < self.until:
            return False
        self.over = True
        return True


class Leases:
    """The leases by cluster; without one attempts run without end."""

    def __init__(self) -> None:
        self._kept: dict[str, ClusterLease] = {}

    def set(self, cluster: str, until: float | None) -> None:
        """Let a cluster's attempts run until then; None: without end."""
        if until is None:
            self._kept.pop(cluster, None)
        else:
            self._kept[cluster] = ClusterLease(cluster, until)

    @property
    def watched(self) -> bool:
        """Tell whether there is a lease.

        It may run out, or the attempts that it ended still exit; both go on while the
        machine sleeps.
        """
        return bool(self._kept)

    @property
    def are_over(self) -> bool:
        """Tell whether no attempt may run because of a lease any more."""
        return all(lease.over for lease in self._kept.values())

    def untils(self) -> dict[str, float]:
        """Return the time of each cluster that has a lease."""
        return {lease.cluster: lease.until for lease in self._kept.values()}

    def is_over(self, id: str) -> bool:
        """Tell whether the lease of an attempt has run out."""
        lease = self._kept.get(cluster_of(id))
        return lease is not None and lease.over

    def run_out(self, now: float) -> list[ClusterLease]:
        """Return, once, the leases that have run out."""
        if not self._kept:
            return []
        return [lease for lease in self._kept.values() if lease.runs_out(now)]

    def entries(self) -> list[Entry]:
        """Return what must be on record."""
        return [LeaseEntry(*one) for one in self.untils().items()]

    def restore(self, entries: list[Entry]) -> None:
        """Take over the leases of an earlier keeper."""
        for one in entries:
            if isinstance(one, LeaseEntry):
                self.set(one.cluster, one.until)
