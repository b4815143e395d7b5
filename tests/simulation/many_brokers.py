"""A cluster whose machines each have a broker, all on one store.

One of them leads. Workers and clients find it by themselves: they try the brokers they
know, and one that does not lead sends them on.
"""

from tests.simulation.broker_node import Database, Node
from tests.simulation.broker_shell import SimBroker
from tests.simulation.channels import Link
from tests.simulation.cluster import SILENCE_US, Cluster
from tests.simulation.machine import Machine
from tests.simulation.worker_shell import SimWorker
from tests.simulation.world import MILLISECOND, SECOND, World

HOUR_US = 3600 * SECOND
NOTICED_US = 6 * SECOND
"""How long a leader takes to see that others look for one elsewhere."""


class ManyBrokers(Cluster):
    """Two or three brokers, and the machines they are on."""

    sizes = (2, 3)
    store: Database

    def __init__(self, world: World) -> None:
        self.nodes: list[Node] = []
        super().__init__(world)

    def set_up(self) -> None:
        """Make the brokers, with clocks up to an hour apart, and start them all."""
        world = self.world
        self.store = Database(self.disk, world, self.auditor.written)
        # Blobs are in the database, so every worker fetches them.
        self.home.blobs = {}
        for machine in self.machines:
            machine.remote = True
            machine.host.set_clock(world.rng.choice((0, 0, HOUR_US, -HOUR_US)))
            self.nodes.append(Node(machine, self, self.store))
        self.start_broker()

    def start_broker(self) -> None:
        """Start the brokers that do not run."""
        for node in self.nodes:
            node.start()

    def rest(self) -> None:
        """Stop renewing the lead."""
        super().rest()
        for node in self.nodes:
            node.rest()

    # Who leads.

    @property
    def leader(self) -> Node | None:
        """The node whose broker clients are sent to."""
        return next((one for one in self.nodes if one.broker is self.broker), None)

    def leads(self, node: Node) -> None:
        """Hear that a node leads now."""
        self.broker, self.home = node.broker, node.machine
        assert node.broker is not None
        node.broker.on_killed = lambda: self.kill_node(node)
        for machine in self.machines:
            self.auditor.apart(machine.host)

    def stepped_down(self, node: Node) -> None:
        """Hear that a node leads no more."""
        if all(one.broker is not self.broker for one in self.nodes):
            self.broker = None
        for machine in self.machines:
            self.auditor.apart(machine.host)

    def asked_broker(self) -> SimBroker | None:
        """Return a broker that a client tries; most know who leads."""
        reached = [one for one in self.nodes if one.broker and not one.isolated]
        node = self.leader
        if self.world.chance(0.2) or node is None or node not in reached:
            return self.world.rng.choice(reached).broker if reached else None
        return self.broker

    def find_broker(self, machine: Machine, worker: SimWorker) -> Link | None:
        """Connect a worker to a broker that believes to lead, if one is reached."""
        for node in self.world.rng.sample(self.nodes, len(self.nodes)):
            broker, own = node.broker, node.machine is machine
            if broker is None or node.machine.host.asleep or not node.trusts():
                continue
            if node.isolated and not own:
                continue
            address = None if own else f"10.0.0.{machine.number}"
            if address is not None and not self._enrolled(broker, machine.id):
                continue
            host = node.machine.host
            link = Link(broker, host, worker, machine.host, machine.slowest_us)
            broker.serve(link, machine.id, address)
            machine.linked_to = node.machine
            return link
        return None

    # Deaths.

    def kill_node(self, node: Node) -> None:
        """Kill a daemon: broker and worker; another starts later."""
        machine = node.machine
        machine.host.note("KILL daemon")
        node.kill()
        machine.end_worker()
        machine.host.after(machine.pause(), "daemon up", lambda: self._up(node))

    def kill_broker(self) -> None:
        """Kill the broker that leads."""
        if self.leader is not None:
            self.kill_broker_of(self.leader)

    def kill_broker_of(self, node: Node) -> None:
        """Kill a broker alone, as if its worker were another daemon."""
        node.machine.host.note("KILL broker")
        node.kill()
        node.machine.host.after(node.machine.pause(), "broker up", node.start)

    def _up(self, node: Node) -> None:
        node.start()
        node.machine.start_worker()

    def reboot(self, machine: Machine, *, power_lost: bool) -> None:
        """Take a machine down with everything on it."""
        node = self.node_of(machine)
        node.kill()
        machine.go_down(power_lost=power_lost)
        machine.host.after(machine.pause(), "daemon up", lambda: self._up(node))

    def node_of(self, machine: Machine) -> Node:
        """Return the broker of a machine."""
        return self.nodes[machine.number - 1]

    # Sleep and cuts.

    def suspend(self, machine: Machine, lasts_us: int) -> None:
        """Put a machine to sleep for a while, as SIGSTOP does with its daemon."""
        if machine.host.asleep:
            return
        machine.host.note("SLEEPS")
        machine.host.sleep()
        for one in self.machines:
            self.auditor.apart(one.host)
            if one is not machine and one.linked_to is machine:
                self._hangs_up(one, machine)
        node = self.leader
        if node is not None and machine.linked_to is node.machine is not machine:
            self._given_up(node, machine)
        self.world.elsewhere.after(lasts_us, "wakes", lambda: self.wake(machine))

    def _hangs_up(self, machine: Machine, asleep: Machine) -> None:
        link, worker = machine.link, machine.worker
        if link is None or worker is None or worker.link is not link:
            return
        delay = self.world.between(500 * MILLISECOND, SILENCE_US)
        hang_up = lambda: worker.lose_link(link) if asleep.host.asleep else None  # noqa: E731
        machine.host.after(delay, "hears nothing", hang_up, worker)

    def _given_up(self, node: Node, asleep: Machine) -> None:
        link, broker = asleep.link, node.broker
        if link is None or broker is None:
            return
        delay = self.world.between(500 * MILLISECOND, SILENCE_US)
        give_up = lambda: broker.give_up(link) if asleep.host.asleep else None  # noqa: E731
        node.machine.host.after(delay, "hears nothing", give_up, broker)

    def isolate(self, node: Node, lasts_us: int) -> None:
        """Cut a broker off from all other machines."""
        node.machine.host.note("ISOLATED")
        node.isolated_until = max(node.isolated_until, self.world.now + lasts_us)
        node.machine.host.after(NOTICED_US, "hears nobody", node.yield_lead)
        for machine in self.machines:
            if machine is not node.machine and machine.linked_to is node.machine:
                machine.cut_link()
