"""Leadership in a store that one broker has to itself, as a file is.

The lock of the home keeps a second broker away, so there is nobody to lead before: the
lead is held without end, its epoch is 0 and no write is checked against it.
"""

from math import inf

from grass.model.brokers import BrokerPresence, Lease, SeenBroker


class LoneBroker:
    """The part of a store that several brokers would compete for."""

    _presence: BrokerPresence | None = None

    def take_lease(
        self,
        holder: str,
        address: str,
        term_s: float,
        epoch: int = 0,
        process: str = "",
    ) -> Lease:
        """Give the lead to whoever asks: no one else can."""
        return Lease(holder=holder, address=address, remaining_s=inf)

    def lease(self) -> Lease:
        """Return the lead of the broker that has opened the store."""
        known = self._presence or BrokerPresence(id="")
        return Lease(holder=known.id, address=known.address, remaining_s=inf)

    def announce(self, broker: BrokerPresence) -> None:
        """Note what the broker says of itself."""
        self._presence = broker

    def brokers(self) -> list[SeenBroker]:
        """Return the broker itself."""
        return [] if self._presence is None else [SeenBroker(broker=self._presence)]
