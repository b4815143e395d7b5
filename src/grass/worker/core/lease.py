"""The worker's part in a lease: it passes on what the broker has answered.

A lease lets the broker run a job elsewhere when this machine is cut off: the keeper
ends every attempt when the lease runs out, also while the daemon is dead. It counts
from a time of this machine's own clock that the broker has repeated, so the broker,
which counts from when it last answered, always waits longer.

What the broker may count on from a `Hello` on, the keeper has before: a lease that is
new, or shorter than the keeper's, is confirmed by the keeper first. Only an answer of
the broker makes a lease longer.

A lease is of the broker's cluster and for its attempts: this machine may have worked
for another broker before, which counts on its own. So the first hello promises nothing;
the welcome names the cluster, and the next hello promises.
"""

from grass.link.messages import Heard, Welcome
from grass.worker.core.effects import Verb

FIRST_VERSION = 2
"""Keepers from this version on know leases."""


class Lease:
    """Until when the keeper lets attempts live, as the worker knows it."""

    def __init__(self, length_s: float | None) -> None:
        self._length_s = length_s
        self._heard_s: float | None = None
        self._can = False
        self._cluster: str | None = None
        """Whose answers these are; None: no broker has answered yet."""
        self._untils: dict[str, float] = {}
        """What the keeper has, or was told last, by cluster."""
        self._confirmed = True

    @property
    def promise(self) -> tuple[str, float] | None:
        """What which cluster may count on: nothing, with a keeper without leases."""
        if self._length_s is None or self._cluster is None or not self._can:
            return None
        return self._cluster, self._length_s

    def keeper_came(self, hello: Verb) -> list[Verb]:
        """Learn what a keeper can and has; tell it what it may not know."""
        self._can = hello.get("version", 1) >= FIRST_VERSION
        self._untils, self._confirmed = dict(hello.get("leases") or {}), True
        return [] if self._length_s is None else self._renewed()

    def before_hello(self, now_s: float) -> list[Verb] | None:
        """Give what the keeper must confirm before a hello; None: it may be said."""
        if self.promise is None:
            return None
        cluster, length_s = self.promise
        most = now_s + length_s
        if self._untils.get(cluster, most + 1.0) > most:
            return self._told(cluster, most)
        return None if self._confirmed else []

    def confirmed(self, line: Verb) -> None:
        """Take the keeper's word that it has the lease it was told."""
        cluster = line.get("cluster", "")
        told = cluster == self._cluster and line.get("until") == self._until
        self._confirmed = self._confirmed or told

    def answered(self, message: Welcome | Heard) -> list[Verb]:
        """Count from what the broker has answered; give what the keeper is to know.

        That there is no lease any more is told with a welcome only: before it the
        broker may count on the lease that a daemon before this one had.
        """
        if isinstance(message, Welcome) and message.cluster != self._cluster:
            self._cluster, self._heard_s = message.cluster, None
        self._heard_s = max(message.at, self._heard_s or 0.0)
        if self._length_s is None and not isinstance(message, Welcome):
            return []
        return self._renewed()

    def _renewed(self) -> list[Verb]:
        if not self._can or self._heard_s is None or self._cluster is None:
            return []
        length_s = self._length_s
        until = None if length_s is None else self._heard_s + length_s
        return [] if until == self._until else self._told(self._cluster, until)

    @property
    def _until(self) -> float | None:
        return self._untils.get(self._cluster or "")

    def _told(self, cluster: str, until: float | None) -> list[Verb]:
        self._confirmed = False
        if until is None:
            self._untils.pop(cluster, None)
        else:
            self._untils[cluster] = until
        return [{"v": "lease", "cluster": cluster, "until": until}]
