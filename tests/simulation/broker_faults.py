"""Faults of brokers that share a store, and of the store between them."""

from collections.abc import Callable

from tests.simulation.broker_node import Node
from tests.simulation.faults import Faults
from tests.simulation.many_brokers import HOUR_US, ManyBrokers
from tests.simulation.world import MILLISECOND, SECOND

LONGEST_CUT_US = 25 * SECOND
OF_MACHINES = (
    "worker killed",
    "keeper killed",
    "rebooted",
    "power lost",
    "worker full",
    "forks fail",
    "link cut",
    "suspended",
)
OF_LINKS = ("cut for long", "slept for long", "keeper stalls", "speaks for others")


class BrokerFaults(Faults):
    """The faults of one run with several brokers."""

    _cluster: ManyBrokers

    def _possible(self) -> dict[str, Callable[[], None]]:
        usual = {**super()._possible(), **self._links.kinds()}
        cut, isolate = self._cut_from_database, self._isolate
        return {
            **{name: usual[name] for name in (*OF_MACHINES, *OF_LINKS)},
            "leader killed": self._kill_leader,
            "leading broker killed": self._kill_leading_broker,
            "standby killed": lambda: self._cluster.kill_node(self._any_node()),
            "leader hung": self._hang,
            "cut from the database": lambda: cut(self._leader()),
            "cut from the others": lambda: isolate(self._leader()),
            "cut from both": self._cut_from_both,
            "standby cut off": lambda: cut(self._any_node()),
            "replies lost": self._lose_replies,
            "database restarted": self._restart_database,
            "database slow": self._slow_database,
            "database read-only": self._read_only,
            "database full": self._fill,
            "an hour's jump": self._jump,
        }

    def _long_ones(self) -> list[str]:
        return ["cut for long", "slept for long", "leader hung", "cut from both"]

    def heal(self) -> None:
        """End all faults."""
        super().heal()
        for node in self._cluster.nodes:
            node.cut_off_until = node.isolated_until = 0
            node.loses_replies = False

    def _any_node(self) -> Node:
        return self._world.rng.choice(self._cluster.nodes)

    def _leader(self) -> Node:
        return self._cluster.leader or self._any_node()

    def _lasts(self) -> int:
        return self._world.spread(100 * MILLISECOND, LONGEST_CUT_US)

    def _kill_leader(self) -> None:
        node, depth = self._leader(), self._depth()
        if node.broker is None or not depth:
            self._cluster.kill_node(node)
        else:
            node.broker.dies_in = depth

    def _kill_leading_broker(self) -> None:
        node, depth = self._leader(), self._depth()
        if node.broker is None or not depth:
            self._cluster.kill_broker_of(node)
        else:
            node.broker.on_killed = lambda: self._cluster.kill_broker_of(node)
            node.broker.dies_in = depth

    def _hang(self) -> None:
        self._cluster.suspend(self._leader().machine, self._lasts())

    def _cut_from_database(self, node: Node) -> None:
        node.cut_off_until = self._world.now + self._lasts()

    def _isolate(self, node: Node) -> None:
        self._cluster.isolate(node, self._lasts())

    def _cut_from_both(self) -> None:
        node = self._leader()
        self._cut_from_database(node)
        self._isolate(node)

    def _lose_replies(self) -> None:
        node = self._any_node()
        node.loses_replies = True
        mend = lambda: setattr(node, "loses_replies", False)  # noqa: E731
        self._world.elsewhere.after(self._lasts(), "replies arrive", mend)

    def _restart_database(self) -> None:
        store = self._cluster.store
        store.down_until = self._world.now + self._lasts() // 4

    def _slow_database(self) -> None:
        self._cluster.store.slow_until = self._world.now + self._lasts()

    def _read_only(self) -> None:
        self._cluster.store.read_only = True
        self._end_later(lambda: setattr(self._cluster.store, "read_only", False))

    def _fill(self) -> None:
        self._cluster.store.full = True
        self._end_later(lambda: setattr(self._cluster.store, "full", False))

    def _end_later(self, end: Callable[[], None]) -> None:
        self._world.elsewhere.after(self._lasts(), "the database is back", end)

    def _jump(self) -> None:
        machine = self._any_node().machine
        machine.host.jump(self._world.rng.choice((HOUR_US, -HOUR_US)))
        node = self._cluster.node_of(machine)
        if node.broker is not None:
            node.broker.clock_jumped()
