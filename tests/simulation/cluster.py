"""The cluster: a broker with its disk on the first machine, and the machines.

Broker and worker of the first machine are one daemon that is killed as one, or two as
if on two machines. The others reach the broker over a network with cuts.
"""

from copy import copy

from grass.model.access import Token
from tests.simulation.auditor import Auditor
from tests.simulation.broker_shell import SimBroker
from tests.simulation.channels import Link
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.keeper_shell import LEASED_SLEEP_US
from tests.simulation.kept_blobs import SpoiledBlobs
from tests.simulation.machine import Machine
from tests.simulation.memory_store import new_disk
from tests.simulation.witness import Witness
from tests.simulation.worker_shell import SimWorker
from tests.simulation.world import MILLISECOND, SECOND, Violation, World

CLUSTER = "c1a55e5000000001"
SILENCE_US = 3 * SECOND
"""How long a link may be silent before a side closes it."""
WAKE_US = LEASED_SLEEP_US + 50 * MILLISECOND
"""How long after a sleep an attempt may live that is recorded as lost."""


class Cluster:
    """A broker and the machines that work for it."""

    has_blobs = True
    """Whether jobs name blobs there: its broker keeps them."""

    sizes: tuple[int, ...] = (1, 2, 3)
    """How many machines there may be."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.disk = new_disk(CLUSTER)
        self.witness = Witness(world)
        self.spoiled = SpoiledBlobs()
        self.auditor = Auditor(world, self.disk, self.witness)
        self.auditor.spoiled = self.spoiled.names
        self.broker: SimBroker | None = None
        size = world.rng.choice(self.sizes)
        self.machines = [
            Machine(world, number, self, self.auditor) for number in range(1, size + 1)
        ]
        for machine in self.machines:
            self.witness.has(machine.host, machine.capacity)
        self.home = self.machines[0]
        # The broker's own worker has the broker's files.
        self.home.blobs = self.disk.blobs
        self.set_up()
        for machine in self.machines:
            machine.start_worker()

    def set_up(self) -> None:
        """Make the disk, and start the broker."""
        self.store = FaultyStore(self.disk, self.world, self.auditor.written)
        self.start_broker()

    @property
    def others(self) -> list[Machine]:
        """The machines that are not the broker's."""
        return self.machines[1:]

    @property
    def leases(self) -> bool:
        """Whether any machine has a lease."""
        return any(machine.lease_s is not None for machine in self.machines)

    # The broker.

    def asked_broker(self) -> SimBroker | None:
        """Return the broker that a client reaches now, if any."""
        return self.broker

    def rest(self) -> None:
        """Stop what goes on without end though nothing happens any more."""
        for machine in self.machines:
            machine.rest()

    def start_broker(self) -> None:
        """Start a broker, unless one runs."""
        if self.broker is None:
            host = self.home.host
            host.note("broker up")
            broker = SimBroker(host, self.store, self.auditor, spoiled=self.spoiled)
            broker.on_killed = self.kill_daemon
            broker.on_fatal = self.fail_daemon
            self.broker = broker

    def find_broker(self, machine: Machine, worker: SimWorker) -> Link | None:
        """Connect a worker to the broker, if one can be reached."""
        broker = self.broker
        if broker is None or self.home.host.asleep:
            return None
        link = Link(broker, self.home.host, worker, machine.host, machine.slowest_us)
        address = None if machine is self.home else f"10.0.0.{machine.number}"
        if address is not None and not self._enrolled(broker, machine.id):
            return None
        broker.serve(link, machine.id, address)
        return link

    def _enrolled(self, broker: SimBroker, worker: str) -> bool:
        """Have a machine join, if it has not or was forgotten since."""
        if any(token.worker == worker for token in broker.state.tokens.values()):
            return True
        if broker.turning:
            # The forget may not be committed yet.
            return False
        token = Token(worker, "worker", b"", 0, "me", worker=worker)
        self.disk.tokens[worker] = token
        broker.state.tokens[worker] = copy(token)
        return True

    def kill_daemon(self) -> None:
        """Kill broker and home worker at once; another daemon starts later."""
        home = self.home
        home.host.note("KILL daemon")
        self._end_broker()
        home.end_worker()
        home.host.after(home.pause(), "daemon up", self._daemon_up)

    def _daemon_up(self) -> None:
        self.start_broker()
        self.home.start_worker()

    def fail_daemon(self) -> None:
        """Stop the daemon because its disk cannot be trusted."""
        self.home.host.note("FATAL the daemon stops")
        self.kill_daemon()

    def kill_broker(self) -> None:
        """Kill the broker alone, as if it were on a machine of its own."""
        home = self.home
        home.host.note("KILL broker")
        self._end_broker()
        home.host.after(home.pause(), "broker up", self.start_broker)

    def reboot(self, machine: Machine, *, power_lost: bool) -> None:
        """Take a machine down with everything on it."""
        if machine is self.home:
            self._end_broker()
            machine.go_down(power_lost=power_lost)
            machine.host.after(machine.pause(), "daemon up", self._daemon_up)
        else:
            machine.reboot(power_lost=power_lost)

    def _end_broker(self) -> None:
        broker, self.broker = self.broker, None
        if broker is not None:
            broker.end()
        for machine in self.machines:
            self.auditor.apart(machine.host)

    # Clocks.

    def jump_clock(self, machine: Machine) -> None:
        """Set the wall clock of a machine."""
        machine.jump_clock()
        self._tell_of_jump(machine)

    def suspend(self, machine: Machine, lasts_us: int) -> None:
        """Put a machine to sleep for a while; its peers notice the silence."""
        if machine.host.asleep:
            return
        machine.host.note("SLEEPS")
        machine.host.sleep()
        for one in self.machines if machine is self.home else [machine]:
            self.auditor.apart(one.host)
        if len(self.machines) == 1:
            # A lone machine: the clients are on it, too.
            self.world.now += lasts_us
            self.world.elsewhere.slept += lasts_us
            self.wake(machine)
            return
        for other in self.others if machine is self.home else [machine]:
            self._falls_silent(other, machine)
        self.world.elsewhere.after(lasts_us, "wakes", lambda: self.wake(machine))

    def wake(self, machine: Machine) -> None:
        """Wake a machine up."""
        if machine.host.asleep:
            machine.host.note("WAKES")
            machine.host.wake()
            if machine.keeper is not None:
                machine.keeper.woke()
            self._expect_ends(machine)
            self._tell_of_jump(machine)

    def _expect_ends(self, machine: Machine) -> None:
        """Check that attempts that were lost in its sleep end soon after it."""
        host, keeper = machine.host, machine.keeper
        until = host.excused_until = self.world.now + WAKE_US

        def check() -> None:
            if host.excused_until > until:
                # It has slept again since, and the time begins anew.
                return
            living = [run.main.attempt for run in self.witness.doomed(host)]
            if keeper is None or machine.keeper is not keeper:
                # Another keeper takes over first and gets the same time.
                self._expect_ends(machine)
            elif living:
                raise Violation(f"{living[0]} goes on after its machine slept")

        host.after(WAKE_US, "must be over", check, quiet=True)

    def _falls_silent(self, machine: Machine, asleep: Machine) -> None:
        """Let the side that is awake close the link, if it is still silent then."""
        link, broker, worker = machine.link, self.broker, machine.worker
        if link is None or broker is None or worker is None or worker.link is not link:
            return
        delay = self.world.between(500 * MILLISECOND, SILENCE_US)
        if asleep is machine:
            give_up = lambda: broker.give_up(link) if asleep.host.asleep else None  # noqa: E731
            self.home.host.after(delay, "hears nothing", give_up, broker)
        else:
            hang_up = lambda: worker.lose_link(link) if asleep.host.asleep else None  # noqa: E731
            machine.host.after(delay, "hears nothing", hang_up, worker)

    def _tell_of_jump(self, machine: Machine) -> None:
        if machine is self.home and self.broker is not None:
            self.broker.clock_jumped()
