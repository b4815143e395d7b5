"""Bugs of several brokers on one store that the simulation must find, one at a time.

A term that is trusted for some seconds too long is none of them: no commit succeeds,
and the broker's margin for leases of workers is longer. `tests/broker` tests that.
"""

import pytest

from grass.broker.core.leadership import AskForLease, Decision, Leadership
from grass.broker.core.rounds import loaded
from grass.errors import LeadLost
from grass.model.brokers import Lease
from tests.simulation.broker_node import Node
from tests.simulation.broker_shell import SimBroker
from tests.simulation.memory_lead import MemoryLead
from tests.simulation.planting import bug
from tests.simulation.runner import run_brokers_seed


@bug("a write is not checked against the epoch", run=run_brokers_seed)
def _unguarded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryLead, "check", lambda self, epoch: None)


@bug("the state is read before the epoch is taken", 14, run_brokers_seed)
def _read_before(patch: pytest.MonkeyPatch) -> None:
    ask, new = Node._ask, Node._new_broker

    def asks(self: Node, number: int, epoch: int) -> None:
        if self.broker is None and number % 4 == 1:
            store = self.connection
            self.__dict__["core"] = loaded(self._host.wall_us)(store)
        ask(self, number, epoch)

    def new_broker(self: Node) -> SimBroker:
        broker = new(self)
        broker.rounds.core = self.__dict__.get("core", broker.rounds.core)
        return broker

    patch.setattr(Node, "_ask", asks)
    patch.setattr(Node, "_new_broker", new_broker)


@bug("a lease is trusted until another leader is heard of", run=run_brokers_seed)
def _trusted_for_ever(patch: pytest.MonkeyPatch) -> None:
    def step(self: Leadership, now_s: float) -> list[Decision]:
        if self._asked_s is not None or now_s < self._ask_s:
            return []
        self._asked_s = now_s
        self._asked = AskForLease(self._asked.number + 1, self.epoch)
        return [self._asked]

    patch.setattr(Leadership, "trusts", lambda self, now_s: self.leads)
    patch.setattr(Leadership, "step", step)


@bug(
    "after a commit in doubt the state is read in the same epoch", run=run_brokers_seed
)
def _same_epoch(patch: pytest.MonkeyPatch) -> None:
    def next_epoch(self: Node) -> None:
        assert self.broker is not None
        self.broker.resume(self.epoch)

    patch.setattr(Node, "next_epoch", next_epoch)


@bug("a broker that starts again goes on in its old epoch", run=run_brokers_seed)
def _old_epoch(patch: pytest.MonkeyPatch) -> None:
    real = MemoryLead.take

    def take(
        self: MemoryLead,
        holder: str,
        address: str,
        epoch: int,
        *,
        ends_s: float,
        now_s: float,
    ) -> Lease:
        epoch = self.epoch if holder == self.holder else epoch
        return real(self, holder, address, epoch, ends_s=ends_s, now_s=now_s)

    patch.setattr(MemoryLead, "take", take)


@bug("who waits is not told that the lead was lost", run=run_brokers_seed)
def _told_nothing(patch: pytest.MonkeyPatch) -> None:
    def take_it(self: SimBroker) -> None:
        for worker in self.state.workers.values():
            worker.connected = False
        self.alive = True

    patch.setattr(SimBroker, "step_down", take_it)


@bug("the lead is taken while another has it", run=run_brokers_seed)
def _taken_early(patch: pytest.MonkeyPatch) -> None:
    real = MemoryLead.take

    def take(
        self: MemoryLead,
        holder: str,
        address: str,
        epoch: int,
        *,
        ends_s: float,
        now_s: float,
    ) -> Lease:
        self.ends_s = now_s
        return real(self, holder, address, epoch, ends_s=ends_s, now_s=now_s)

    def check(self: MemoryLead, epoch: int) -> None:
        if epoch + 1 < self.epoch:
            raise LeadLost("far behind")

    patch.setattr(MemoryLead, "take", take)
    patch.setattr(MemoryLead, "check", check)
