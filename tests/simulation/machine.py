"""The machine: its disk, its processes, and the daemons that come and go on it.

Broker and worker are one daemon that dies as one, or two as if on two machines; the
keeper dies alone; a reboot takes everything. Each kill names when the dead come back.
"""

from grass.model.resources import capacity_from
from grass.model.worker import Unit
from tests.simulation.auditor import Auditor
from tests.simulation.broker_shell import SimBroker
from tests.simulation.channels import Link
from tests.simulation.faulty_store import FaultyStore
from tests.simulation.keeper_shell import Line, RecordsFile, SimKeeper
from tests.simulation.memory_store import new_disk
from tests.simulation.processes import Processes
from tests.simulation.witness import Witness
from tests.simulation.worker_shell import SimWorker
from tests.simulation.world import MILLISECOND, SECOND, World

CLUSTER = "c1a55e5000000001"
LONGEST_JUMP_US = 10 * 60 * SECOND
UNITS = ("{cpu:2}", "{cpu:3}", "{cpu:4,gpu:1}", "{cpu:2,gpu:2}", "{cpu:1}")


class Machine:
    """One machine with all that lives on it."""

    def __init__(self, world: World) -> None:
        """Bring everything up on an empty disk."""
        self.world = world
        self.capacity = capacity_from(world.rng.choice(UNITS))
        self.found = {
            kind: {name: Unit(amount) for name, amount in units.items()}
            for kind, units in self.capacity.items()
        }
        self.boots = 1
        self.disk = new_disk(CLUSTER)
        self.witness = Witness(world, self.capacity)
        self.auditor = Auditor(world, self.disk, self.witness)
        self.store = FaultyStore(self.disk, world, self.auditor.written)
        self.records = RecordsFile()
        self.processes = Processes(world, self.auditor, world.chance(0.5))
        self.broker: SimBroker | None = None
        self.worker: SimWorker | None = None
        self.keeper: SimKeeper | None = None
        self.link: Link | None = None
        self.flaps = False
        """Whether new links are cut again at once."""
        self._lines = 0
        self._starting_keeper = False
        self.start_broker()
        self.start_worker()

    @property
    def boot(self) -> str:
        """The name of this boot."""
        return f"boot-{self.boots}"

    # Coming up.

    def start_broker(self) -> None:
        """Start a broker, unless one runs."""
        if self.broker is None:
            self.world.note("broker up")
            broker = SimBroker(self.world, self.store, self.auditor)
            broker.on_killed = self.kill_daemon
            broker.on_fatal = self.fail_daemon
            self.broker = broker

    def start_worker(self) -> None:
        """Start a worker, unless one runs."""
        if self.worker is None:
            self.world.note("worker up")
            around, found = self, self.found
            # Known before it is connected: the keeper may be found at once.
            self.worker = SimWorker(
                self.world, around, self.boot, found, self.processes
            )
            self.worker.on_killed = self.kill_daemon

    def start_keeper(self) -> None:
        """Have a keeper come up soon, unless one runs or is coming."""
        if self.keeper is None and not self._starting_keeper:
            self._starting_keeper = True
            delay = self.world.between(2 * MILLISECOND, 30 * MILLISECOND)
            boot = self.boots
            self.world.after(delay, "keeper up", lambda: self._keeper_up(boot))

    def _keeper_up(self, boot: int) -> None:
        if boot == self.boots:
            self._starting_keeper = False
            keeper = SimKeeper(self.world, self.boot, self.records, self.processes)
            keeper.on_left = self._keeper_left
            keeper.on_killed = self.kill_keeper
            self.keeper = keeper

    def find_keeper(self, worker: SimWorker) -> Line | None:
        """Connect a worker to the keeper, if one is there."""
        if self.keeper is None:
            return None
        self._lines += 1
        line = Line(self.world, self._lines, self.keeper, worker)
        self.keeper.connect(line)
        return line

    def find_broker(self, worker: SimWorker) -> Link | None:
        """Connect a worker to the broker, if one is there."""
        if self.broker is None:
            return None
        self.link = Link(self.world, self.broker, worker)
        self.broker.serve(self.link)
        if self.flaps and self.world.chance(0.4):
            # Cut again at once, while the worker's hello is under way.
            self.world.after(self.world.between(0, 400), "flaps", self.cut_link)
        return self.link

    # Going down.

    def kill_daemon(self) -> None:
        """Kill broker and worker at once; another daemon comes up."""
        self.world.note("KILL daemon")
        self._end_broker()
        self._end_worker()
        pause = self._pause()
        self.world.after(pause, "daemon up", self._daemon_up)

    def _daemon_up(self) -> None:
        self.start_broker()
        self.start_worker()

    def fail_daemon(self) -> None:
        """Stop the daemon because its disk cannot be trusted."""
        self.world.note("FATAL the daemon stops")
        self.kill_daemon()

    def kill_broker(self) -> None:
        """Kill the broker alone, as if it were on a machine of its own."""
        self.world.note("KILL broker")
        self._end_broker()
        self.world.after(self._pause(), "broker up", self.start_broker)

    def kill_worker(self) -> None:
        """Kill the worker alone."""
        self.world.note("KILL worker")
        self._end_worker()
        self.world.after(self._pause(), "worker up", self.start_worker)

    def kill_keeper(self) -> None:
        """Kill the keeper; whoever misses it starts another."""
        if self.keeper is not None:
            self.world.note("KILL keeper")
            self.auditor.unclear_at = self.world.now
            keeper, self.keeper = self.keeper, None
            keeper.end()
            self.processes.orphan(keeper)

    def _keeper_left(self) -> None:
        self.world.note("the keeper leaves")
        self.keeper = None

    def reboot(self, *, power_lost: bool) -> None:
        """Take everything down at once; after a power cut the records may be gone."""
        self.world.note("POWER LOST" if power_lost else "REBOOT")
        self.auditor.unclear_at = self.world.now
        self._end_broker()
        self._end_worker()
        self.kill_keeper()
        self.processes.kill_all()
        self.boots += 1
        self._starting_keeper = False
        if power_lost and self.records.entries:
            kept = self.world.rng.randint(0, len(self.records.entries))
            del self.records.entries[kept:]
        self.world.after(self._pause(), "daemon up", self._daemon_up)

    def _end_broker(self) -> None:
        broker, self.broker = self.broker, None
        if broker is not None:
            broker.end()

    def _end_worker(self) -> None:
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.end()

    def _pause(self) -> int:
        return int(5 * MILLISECOND * 600 ** self.world.rng.random())

    # Links.

    def cut_link(self) -> None:
        """Lose the tails of both directions; each side notices in its own time."""
        link, worker = self.link, self.worker
        if link is None or worker is None or worker.link is not link:
            return
        self.world.note("CUT link")
        link.to_broker.cut(int(100 * 50_000 ** self.world.rng.random()))
        link.to_worker.cut(self.world.between(0, 50 * MILLISECOND))
        notices = int(100 * 20_000 ** self.world.rng.random())
        self.world.after(notices, "notices", lambda: worker.lose_link(link), worker)

    # Clocks.

    def jump_clock(self) -> None:
        """Set the wall clock, forward or back."""
        self.world.jump(self.world.between(-LONGEST_JUMP_US, LONGEST_JUMP_US))
        self._tell_of_jump()

    def suspend(self) -> None:
        """Put the machine to sleep for a while."""
        self.world.sleep(self.world.between(SECOND, 10 * 60 * SECOND))
        self._tell_of_jump()

    def _tell_of_jump(self) -> None:
        if self.broker is not None:
            self.broker.clock_jumped()
