"""Brokers of one cluster that share a database: who leads, and who stands by.

One of them leads, for a term; each change of the leader has a number of its own, the
epoch. All spans are measured by the database's clock: those of the hosts may differ.
"""

import msgspec

from grass.errors import BrokerInUse

CLAIM_S = 5.0
"""How long an announcement keeps other processes from being the same broker."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """Who leads, as the database has it."""

    holder: str
    """The id of a broker; empty: nobody has led yet."""
    address: str = ""
    """Where clients and workers reach it."""
    epoch: int = 0
    """How often the lead was taken so far."""
    remaining_s: float = 0.0
    """For how long nobody else may take it; not above 0: anybody may."""
    led_s: float = 0.0
    """How long ago it was taken."""


class BrokerPresence(msgspec.Struct, frozen=True, kw_only=True):
    """What a broker says of itself."""

    id: str
    name: str = ""
    address: str = ""
    """Where clients and workers reach it; empty: it serves its own host only."""
    pin: str = ""
    """The hash of its public key, which all brokers of a cluster have in common."""
    version: str = ""
    started_at: int = 0
    lag_s: float = 0.0
    """How long the database took to answer it last."""
    asks: int = 0
    """How often workers of other machines have dialled this standby lately."""
    process: str = ""
    """The random id of the process: a copied home has the same id of a broker."""
    lock: str = ""
    """The lock that the process holds: no two processes hold it at once."""
    host: str = ""
    home: str = ""
    """The state directory."""

    def may_follow(self, other: "SeenBroker") -> bool:
        """Return whether this process may be the broker that another one was.

        It holds the lock that the other one held, or that one is gone for long enough.
        """
        claim = other.broker
        is_own = claim.process in ("", self.process) or claim.lock == self.lock
        return is_own or other.seen_s >= CLAIM_S


class SeenBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that was announced, and how long ago that was."""

    broker: BrokerPresence
    seen_s: float = 0.0


def broker_in_use(other: SeenBroker) -> BrokerInUse:
    """Return the error for a second process of a broker."""
    place = other.broker
    at = f", reached at {place.address}" if place.address else ""
    error = BrokerInUse(
        f"this home has the identity of a broker that runs in {place.home} on"
        f" {place.host}{at}",
        "one of the two is a copy: stop that broker, or remove worker-id from this"
        " home and join: grass join --standby HOST:PORT/PIN/CODE",
    )
    error.seen_s = other.seen_s
    return error
