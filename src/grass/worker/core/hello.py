"""The worker's hello: who it is, all that it has, and what the broker may count on.

A hello is the whole truth, and what it promises the keeper has before: see `lease`.
"""

import msgspec

from grass.link.messages import VERSION, Hello
from grass.model.worker import Found
from grass.worker.core.effects import Verb
from grass.worker.core.held_attempt import Held, report_of, start_of
from grass.worker.core.lease import Lease


class Identity(msgspec.Struct, frozen=True):
    """What a worker says of itself, always the same."""

    worker: str
    name: str
    boot: str
    found: Found
    labels: tuple[str, ...] = ()
    instance: str = ""
    """Tells this home from copies of it."""


class Greeting:
    """What the last hello said, and whether another one is due."""

    def __init__(self, who: Identity, lease: Lease) -> None:
        self._who = who
        self._lease = lease
        self._promise: tuple[str, float] | None = None
        """What the last hello promised, and whom."""
        self.waits = False
        """Whether a hello is due as soon as the keeper has confirmed its lease."""

    @property
    def outdated(self) -> bool:
        """Whether something else is to be promised than the last hello did."""
        return self._lease.promise != self._promise

    def first(self, now_s: float) -> list[Verb] | None:
        """Give what the keeper must confirm first; None: the hello may be said."""
        verbs = self._lease.before_hello(now_s)
        self.waits = verbs is not None
        return verbs

    def hello(
        self, attempts: dict[str, Held], now_s: float, unable: str, wall_us: int
    ) -> Hello:
        """Tell everything, and promise what the keeper has confirmed."""
        who, held = self._who, attempts.items()
        self._promise = self._lease.promise
        return Hello(
            worker=who.worker,
            name=who.name,
            boot=who.boot,
            found=who.found,
            running=[
                report_of(name, one, now_s) for name, one in held if not one.exited
            ],
            exited=[one.exited for _, one in held if one.exited],
            started=[
                start_of(one.started, one.exited)
                for _, one in held
                if one.exited and one.started
            ],
            version=VERSION,
            labels=who.labels,
            lease_s=None if self._promise is None else self._promise[1],
            at=now_s,
            instance=who.instance,
            unable=unable,
            wall_at=wall_us,
            confirms_removals=True,
        )
