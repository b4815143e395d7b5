"""Who leads, in the store of the simulation."""

import msgspec

from grass.errors import LeadLost
from grass.model.brokers import BrokerPresence, Lease, SeenBroker, broker_in_use


class MemoryLead(msgspec.Struct):
    """The row of the lease, and those who announced themselves."""

    holder: str = ""
    address: str = ""
    epoch: int = 0
    ends_s: float = 0.0
    taken_s: float = 0.0
    seen: dict[str, tuple[BrokerPresence, float]] = {}

    def check(self, epoch: int) -> None:
        """Raise if this epoch is not the current one."""
        if epoch != self.epoch:
            raise LeadLost(f"epoch {epoch} has ended; {self.holder} leads")

    def check_process(
        self, broker: BrokerPresence, now_s: float, epoch: int = 0
    ) -> None:
        """Raise if another process is this broker, unless it renews its own epoch."""
        known = self.seen.get(broker.id)
        if known is None or (epoch and epoch == self.epoch):
            return
        other = SeenBroker(broker=known[0], seen_s=now_s - known[1])
        if not broker.may_follow(other):
            raise broker_in_use(other)

    def take(
        self, holder: str, address: str, epoch: int, *, ends_s: float, now_s: float
    ) -> Lease:
        """Take or renew the lead, if nobody else has it."""
        own = holder == self.holder
        if not own and now_s < self.ends_s:
            if ends_s > now_s:
                self.ends_s = min(self.ends_s, ends_s)
            return self.at(now_s)
        if not own or epoch != self.epoch:
            self.epoch, self.taken_s = self.epoch + 1, now_s
        self.holder, self.address, self.ends_s = holder, address, ends_s
        return self.at(now_s)

    def at(self, now_s: float) -> Lease:
        """Return the lease as it is now."""
        return Lease(
            holder=self.holder,
            address=self.address,
            epoch=self.epoch,
            remaining_s=self.ends_s - now_s,
            led_s=now_s - self.taken_s if self.epoch else 0.0,
        )

    def brokers(self, now_s: float) -> list[SeenBroker]:
        """Return those who announced themselves, by id."""
        rows = sorted(self.seen.items())
        return [SeenBroker(broker=one, seen_s=now_s - at) for _, (one, at) in rows]
