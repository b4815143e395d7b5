"""Brokers of one cluster that share a database: who leads, and who stands by.

One of them leads, for a term; each change of the leader has a number of its own, the
epoch. All spans are measured by the database's clock: those of the hosts may differ.
"""

import msgspec


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


class SeenBroker(msgspec.Struct, frozen=True, kw_only=True):
    """A broker that was announced, and how long ago that was."""

    broker: BrokerPresence
    seen_s: float = 0.0
