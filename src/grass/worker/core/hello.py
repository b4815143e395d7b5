"""The worker's hello and its lease: who it is, all attempts, and what it promises.

A lease lets the broker run a job elsewhere when this machine is cut off: the keeper
ends every attempt when the lease runs out, also while the daemon is dead. The lease
counts from a time of this machine's clock that the broker has repeated, so the broker,
which counts from its last answer, always waits longer.

The keeper has a lease before a hello promises it: one that is new, or shorter than the
keeper's, is confirmed by the keeper first. Only an answer of the broker extends it.

A lease is for the attempts of one cluster, as this machine may have worked for another
broker before. So the first hello promises nothing; the welcome names the cluster, and
the next hello promises.
"""

import msgspec
from msgspec.structs import replace

from grass.keeper.protocol import HelloEntry, LeasedEntry, LeaseVerb
from grass.link.messages import LINK_VERSION, Heard, Hello, Welcome
from grass.model.worker import FoundUnits
from grass.worker.core.attempt_table import WorkerAttempt

FIRST_VERSION = 2
"""Keepers from this version on know leases."""
FIRST_WITH_TASKS = 4
"""Keepers from this version on hand tasks to runners."""
FIRST_WITH_SEARCHES = 6
"""Keepers from this version on know `adopt`."""


class WorkerLease:
    """Until when the keeper lets attempts run, as the worker knows it."""

    def __init__(self, length_s: float | None) -> None:
        self._length_s = length_s
        self._heard_s: float | None = None
        self._supported = False
        self._cluster: str | None = None
        """The cluster of the broker that answers; None: none has answered yet."""
        self._untils: dict[str, float] = {}
        """What the keeper has, or was last told, by cluster."""
        self._confirmed = True

    @property
    def promise(self) -> tuple[str, float] | None:
        """The cluster and length of the lease; None if the keeper knows no leases."""
        if self._length_s is None or self._cluster is None or not self._supported:
            return None
        return self._cluster, self._length_s

    def keeper_connected(self, hello: HelloEntry) -> list[LeaseVerb]:
        """Note a keeper's version and leases; return what it must be told."""
        self._supported = hello.version >= FIRST_VERSION
        self._untils, self._confirmed = dict(hello.leases), True
        return [] if self._length_s is None else self._renewed()

    def before_hello(self, now_s: float) -> list[LeaseVerb] | None:
        """Return what the keeper must confirm before a hello; None: nothing."""
        if self.promise is None:
            return None
        cluster, length_s = self.promise
        most = now_s + length_s
        if self._untils.get(cluster, most + 1.0) > most:
            return self._set(cluster, most)
        return None if self._confirmed else []

    def confirmed(self, entry: LeasedEntry) -> None:
        """Note that the keeper has recorded a lease."""
        same = entry.cluster == self._cluster and entry.until == self._until
        self._confirmed = self._confirmed or same

    def answered(self, message: Welcome | Heard) -> list[LeaseVerb]:
        """Renew the lease after an answer of the broker; return verbs for the keeper.

        Only a welcome removes a lease: before it, the broker may count on the lease of
        an earlier daemon.
        """
        if isinstance(message, Welcome) and message.cluster != self._cluster:
            self._cluster, self._heard_s = message.cluster, None
        self._heard_s = max(message.at, self._heard_s or 0.0)
        if self._length_s is None and not isinstance(message, Welcome):
            return []
        return self._renewed()

    def _renewed(self) -> list[LeaseVerb]:
        if not self._supported or self._heard_s is None or self._cluster is None:
            return []
        length_s = self._length_s
        until = None if length_s is None else self._heard_s + length_s
        return [] if until == self._until else self._set(self._cluster, until)

    @property
    def _until(self) -> float | None:
        return self._untils.get(self._cluster or "")

    def _set(self, cluster: str, until: float | None) -> list[LeaseVerb]:
        self._confirmed = False
        if until is None:
            self._untils.pop(cluster, None)
        else:
            self._untils[cluster] = until
        return [LeaseVerb(cluster, until)]


class WorkerIdentity(msgspec.Struct, frozen=True):
    """What a worker always says of itself."""

    worker: str
    name: str
    boot: str
    found: FoundUnits
    labels: tuple[str, ...] = ()
    instance: str = ""
    """Tells this home from copies of it."""
    enforces: tuple[str, ...] = ()
    """What of a request it can enforce."""
    ends_at: float | None = None
    """When an engine ends it, by the clock since boot; None: no engine does."""


class HelloState:
    """What the last hello promised, and whether another one must follow."""

    def __init__(self, identity: WorkerIdentity, lease: WorkerLease) -> None:
        self._identity = identity
        self._lease = lease
        self._promise: tuple[str, float] | None = None
        """What the last hello promised, and to which cluster."""
        self._controllers: tuple[str, ...] = ()
        """What the keeper can enforce by cgroups."""
        self._runs_tasks = False
        self.searches = False
        """Whether the keeper finds processes of which there is no record."""
        self.waits = False
        """Whether a hello follows as soon as the keeper has confirmed its lease."""

    def keeper_connected(self, hello: HelloEntry) -> None:
        """Note what a keeper can do."""
        self._controllers = tuple(hello.controllers)
        self._runs_tasks = hello.version >= FIRST_WITH_TASKS
        self.searches = hello.version >= FIRST_WITH_SEARCHES

    def units_found(self, found: FoundUnits) -> bool:
        """Note the units of this machine; returns whether they have changed."""
        changed = found != self._identity.found
        self._identity = replace(self._identity, found=found)
        return changed

    @property
    def outdated(self) -> bool:
        """Whether the promise has changed since the last hello."""
        return self._lease.promise != self._promise

    def prepare(self, now_s: float) -> list[LeaseVerb] | None:
        """Return what the keeper must confirm first; None: say hello now."""
        verbs = self._lease.before_hello(now_s)
        self.waits = verbs is not None
        return verbs

    def hello(
        self,
        attempts: dict[str, WorkerAttempt],
        now_s: float,
        unable: str,
        wall_us: int,
    ) -> Hello:
        """Return a hello that reports all attempts."""
        who, known = self._identity, attempts.items()
        self._promise = self._lease.promise
        return Hello(
            worker=who.worker,
            name=who.name,
            boot=who.boot,
            found=who.found,
            running=[one.report(name, now_s) for name, one in known if not one.exited],
            exited=[one.exited for _, one in known if one.exited],
            started=[
                replace(one.started, ran_s=one.exited.ran_s or 0.0)
                for _, one in known
                if one.exited and one.started
            ],
            version=LINK_VERSION,
            labels=who.labels,
            lease_s=None if self._promise is None else self._promise[1],
            at=now_s,
            instance=who.instance,
            unable=unable,
            wall_at=wall_us,
            confirms_removals=True,
            enforces=(*who.enforces, *self._controllers),
            shrinks=True,
            runs_tasks=self._runs_tasks,
            searches=self.searches,
            time_left_s=None if who.ends_at is None else max(0.0, who.ends_at - now_s),
        )
