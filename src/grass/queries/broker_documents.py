"""Documents of the brokers of a cluster."""

from collections.abc import Sequence

import msgspec

from grass.model.brokers import Lease, SeenBroker
from grass.model.times import rfc3339


class BrokerReply(msgspec.Struct):
    """A broker of the cluster."""

    id: str
    name: str
    address: str
    version: str
    leads: bool
    started_at: str | None
    heard_s: float
    """How long ago the database heard of it."""
    lag_s: float
    """How long the database took to answer it last."""


class BrokersReply(msgspec.Struct):
    """The brokers of the cluster: one leads, the others stand by."""

    brokers: list[BrokerReply]
    leader: str
    """The id of the one that leads; empty: none at present."""
    last_leader: str
    """The id of the one that has taken the lead last."""
    epoch: int
    """How often the lead was taken so far; 0: the broker has its store to itself."""
    led_s: float
    """How long ago it took the lead."""


def brokers_document(seen: Sequence[SeenBroker], lease: Lease) -> BrokersReply:
    """Return the leader first, and then the others by name."""
    leader = lease.holder if lease.remaining_s > 0 else ""
    shown = [
        BrokerReply(
            id=one.broker.id,
            name=one.broker.name,
            address=one.broker.address,
            version=one.broker.version,
            leads=one.broker.id == leader,
            started_at=rfc3339(one.broker.started_at),
            heard_s=round(one.seen_s, 3),
            lag_s=one.broker.lag_s,
        )
        for one in seen
    ]
    shown.sort(key=lambda one: (not one.leads, one.name, one.id))
    led_s = round(lease.led_s, 3)
    return BrokersReply(shown, leader, lease.holder, lease.epoch, led_s)
