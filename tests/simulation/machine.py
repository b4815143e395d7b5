"""One machine: its processes, its keeper with records, and its worker.

The worker is killed alone or with the machine, the keeper alone; a reboot ends
everything. After each kill a new process starts later. The first machine is the
broker's as well; faults of the broker are in `cluster`.
"""

from typing import Protocol

from grass.model.resources import capacity_from
from grass.model.worker import Unit
from tests.simulation.auditor import Auditor
from tests.simulation.channels import Link
from tests.simulation.devices import SimGpus
from tests.simulation.keeper_shell import Line, RecordsFile, SimKeeper
from tests.simulation.processes import Processes
from tests.simulation.worker_shell import Identity, SimWorker
from tests.simulation.world import MILLISECOND, SECOND, World

LONGEST_JUMP_US = 60 * SECOND
LONGEST_SKEW_US = 30 * 24 * 60 * 60 * SECOND
"""How wrong a worker's clock may be, at any time."""
LONGEST_UPTIME_US = 24 * 60 * 60 * SECOND
ONE_GPU, TWO_GPUS = "{cpu:4,gpu:1,vram:[40]}", "{cpu:2,gpu:2,vram:[40,40]}"
UNITS = ("{cpu:2}", "{cpu:3}", ONE_GPU, TWO_GPUS, "{cpu:1}")
LABELS: tuple[tuple[str, ...], ...] = ((), ("fast",), ("big", "fast"))
NAMES = ("desk", "node", "node")
"""Two workers have the same name."""
LATENCIES_US = (300, 3 * MILLISECOND, 30 * MILLISECOND)
LEASES_S = (6.0, 12.0)
NO_STALL_US = 20 * SECOND


class Network(Protocol):
    """The cluster as a machine sees it."""

    def find_broker(self, machine: "Machine", worker: SimWorker) -> Link | None:
        """Connect a worker to the broker, if one can be reached."""

    def suspend(self, machine: "Machine", lasts_us: int) -> None:
        """Put a machine to sleep for a while."""


class Machine:
    """One machine with all its processes, except for the broker."""

    def __init__(
        self, world: World, number: int, network: Network, auditor: Auditor
    ) -> None:
        rng = world.rng
        self.world = world
        self.number = number
        self.id = f"worker-{number}"
        self.host = world.new_host(self.id)
        self.capacity = capacity_from(rng.choice(UNITS))
        self.labels = rng.choice(LABELS) if number > 1 else ()
        leased = number > 1 and rng.random() < 0.5
        self.lease_s = rng.choice(LEASES_S) if leased else None
        self.slowest_us = rng.choice(LATENCIES_US) if number > 1 else LATENCIES_US[0]
        """The longest time that a message to the broker or back takes."""
        self.remote = number > 1
        """Whether its worker may be on another machine than the broker."""
        self.boots = 1
        self.instance = f"home of {self.id}"
        self.records = RecordsFile()
        self.processes = Processes(self.host, auditor, world.chance(0.5))
        memory = self.capacity.get("vram", {})
        self.gpus = SimGpus(self.host, memory, self.processes)
        self.blobs: dict[str, bytes] = {}
        """Those that were fetched since it was started."""
        self.missed_exits = False
        """Whether a keeper was killed while exits could not be recorded."""
        self.worker: SimWorker | None = None
        self.keeper: SimKeeper | None = None
        self.link: Link | None = None
        self.linked_to: Machine | None = None
        """The machine of the broker that it is linked to, where there are several."""
        self.flaps = False
        """Whether new links are cut at once."""
        self.cut_off_until = 0
        """Until when it has no network."""
        self.cuts_next_us = 0
        """How long the next link is cut while the worker's hello is under way."""
        self.sleeps_next_us = 0
        """How long it sleeps when the next start is under way to its keeper."""
        self.loses_files = False
        """Whether files are lost when it next goes down."""
        self._network = network
        self._auditor = auditor
        self._lines = 0
        self._stalls_again_at = 0
        self._starting_keeper = False
        self.host.boot(world.between(0, LONGEST_UPTIME_US))
        if number > 1:
            most = LONGEST_SKEW_US if world.chance(0.5) else 5 * SECOND
            self.host.jump(world.between(-most, most))

    @property
    def boot(self) -> str:
        """The id of this boot."""
        return f"boot-{self.number}.{self.boots}"

    @property
    def identity(self) -> Identity:
        """The identity of its worker."""
        found = {
            kind: {name: Unit(amount) for name, amount in units.items()}
            for kind, units in self.capacity.items()
        }
        name, lease_s = NAMES[self.number - 1], self.lease_s
        return Identity(
            self.id, name, found, self.labels, lease_s, self.remote, self.instance
        )

    @property
    def away(self) -> bool:
        """Whether it seems to be gone."""
        return self.worker is None or self.worker.link is None or self.host.asleep

    # Coming up.

    def start_worker(self) -> None:
        """Start a worker, unless one runs."""
        if self.worker is None:
            self.host.note("worker up")
            # Set before it connects, because it may find the keeper at once.
            self.worker = SimWorker(
                self.host, self, self.boot, self.identity, self.processes, self.gpus
            )
            self.worker.on_killed = self.kill_worker

    def start_keeper(self) -> None:
        """Start a keeper soon, unless one runs or is starting."""
        if self.keeper is None and not self._starting_keeper:
            self._starting_keeper = True
            delay = self.world.between(2 * MILLISECOND, 30 * MILLISECOND)
            boot = self.boots
            self.host.after(delay, "keeper up", lambda: self._keeper_up(boot))

    def _keeper_up(self, boot: int) -> None:
        if boot == self.boots:
            self._starting_keeper = False
            keeper = SimKeeper(self.host, self.boot, self.records, self.processes)
            keeper.on_left = self._keeper_left
            keeper.on_killed = self.kill_keeper
            self.keeper = keeper

    def find_keeper(self, worker: SimWorker) -> Line | None:
        """Connect a worker to the keeper, if one is there."""
        if self.keeper is None or not self.keeper.can_be_found:
            return None
        self._lines += 1
        line = Line(self.host, self._lines, self.keeper, worker)
        self.keeper.connect(line)
        return line

    def find_broker(self, worker: SimWorker) -> Link | None:
        """Connect a worker to the broker, if one can be reached."""
        if self.world.now < self.cut_off_until:
            return None
        link = self._network.find_broker(self, worker)
        if link is not None:
            self.link = link
            if self.cuts_next_us:
                lasts, self.cuts_next_us = self.cuts_next_us, 0
                delay = self.world.between(0, 3 * self.slowest_us + 3 * MILLISECOND)
                self.host.after(delay, "cut", lambda: self.cut_off(lasts))
            if self.flaps and self.world.chance(0.4):
                # Cut again at once, while the worker's hello is under way.
                delay = self.world.between(0, 2 * self.slowest_us)
                self.host.after(delay, "flaps", self.cut_link)
        return link

    def start_sent(self) -> None:
        """Fall asleep, if that was drawn, before the keeper gets the start."""
        if self.sleeps_next_us:
            lasts, self.sleeps_next_us = self.sleeps_next_us, 0
            asleep = lambda: self._network.suspend(self, lasts)  # noqa: E731
            self.world.elsewhere.after(0, "sleeps", asleep)

    # Going down.

    def kill_worker(self) -> None:
        """Kill the worker alone; another starts later."""
        self.host.note("KILL worker")
        self.end_worker()
        self.host.after(self.pause(), "worker up", self.start_worker)

    def kill_keeper(self) -> None:
        """Kill the keeper; the worker starts another."""
        if self.keeper is not None:
            self.host.note("KILL keeper")
            self._auditor.unclear(self.host)
            keeper, self.keeper = self.keeper, None
            self.missed_exits |= self.records.full
            keeper.end()
            known = keeper.core.attempts.values()
            if self.records.full:
                self._auditor.unrecorded |= {one.id for one in known}
            self._auditor.in_doubt |= {
                one.id for one in known if one.state == "starting"
            }
            self.processes.orphan(keeper)

    def lose_socket(self) -> None:
        """Delete the keeper's socket; connections stay."""
        if self.keeper is not None:
            self.host.note("DELETE the keeper's socket")
            self.keeper.can_be_found = False

    def stall_keeper(self, lasts_us: int) -> None:
        """Stop the keeper for a while, but not twice in a row."""
        slept = self.world.now <= self.host.excused_until
        if slept or self.host.asleep or self.host.now < self._stalls_again_at:
            return
        if self.keeper is not None:
            self.host.note("STALL keeper")
            # A message that is read too late counts as lost.
            self._auditor.apart(self.host)
            self._stalls_again_at = self.host.now + lasts_us + NO_STALL_US
            self.keeper.stall(lasts_us)

    def _keeper_left(self) -> None:
        self.host.note("the keeper leaves")
        self.keeper = None

    def go_down(self, *, power_lost: bool) -> None:
        """End everything at once; after a power cut the records may be gone."""
        self.host.note("POWER LOST" if power_lost else "REBOOT")
        self.host.wake()
        self._auditor.unclear(self.host)
        self.end_worker()
        if power_lost and self.keeper is not None:
            self.keeper.check_synced()
        self.kill_keeper()
        self.processes.kill_all()
        self.boots += 1
        if self.number > 1:
            self.blobs = {}
        self.host.boot()
        self._starting_keeper = False
        if power_lost:
            self.records.lose_power(self.world.rng)
        if self.loses_files:
            self.loses_files = False
            self.lose_files()
        self._auditor.on_record(self.host, self.records.exits())

    def lose_files(self) -> None:
        """Lose the instance of the home, and perhaps the keeper's whole folder."""
        self.host.note("FILES LOST")
        self.instance = f"home {self.boots} of {self.id}"
        if self.world.chance(0.5):
            self.records.lose()

    def reboot(self, *, power_lost: bool) -> None:
        """Go down, and come up again."""
        self.go_down(power_lost=power_lost)
        self.host.after(self.pause(), "daemon up", self.start_worker)

    def end_worker(self) -> None:
        """End the worker."""
        self._auditor.apart(self.host)
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.end()

    def pause(self) -> int:
        """Draw how long a restart takes."""
        return self.world.spread(5 * MILLISECOND, 3 * SECOND)

    # Links.

    def cut_link(self) -> None:
        """Lose the last messages of both directions; each side notices later."""
        link, worker = self.link, self.worker
        if link is None or worker is None or worker.link is not link:
            return
        self.host.note("CUT link")
        self._auditor.apart(self.host)
        link.to_broker.cut(self.world.spread(100, 5 * SECOND))
        link.to_worker.cut(self.world.between(0, 50 * MILLISECOND))
        notices = self.world.spread(100, 2 * SECOND)
        self.host.after(notices, "notices", lambda: worker.lose_link(link), worker)

    def cut_off(self, lasts_us: int) -> None:
        """Cut the link, and refuse new ones for a while."""
        self.cut_off_until = max(self.cut_off_until, self.world.now + lasts_us)
        self.cut_link()

    def heal(self) -> None:
        """End all faults of this machine."""
        self.flaps = self.records.full = self.processes.full = False
        self.cut_off_until = self.cuts_next_us = self.sleeps_next_us = 0
        self.gpus.heal()
        if self.keeper is not None:
            self.keeper.dies_handing = False
        if self.worker is not None:
            self.worker.fetches.dies = None
        for one in (self.worker, self.keeper):
            if one is not None:
                one.dies_in = 0

    def rest(self) -> None:
        """Stop heartbeats, and ask for no lease."""
        if self.worker is not None:
            self.worker.beats = False
            self.worker.core._lease._length_s = None

    def drop_leases(self) -> None:
        """Drop the keeper's leases."""
        if self.keeper is not None:
            for cluster in self.keeper.core.leases.untils():
                self.keeper.core.leases.set(cluster, None)
                self.keeper.core.timers.cancel("lease", cluster)

    # Clocks.

    def jump_clock(self) -> None:
        """Set the wall clock, forward or back."""
        far = self.number > 1 and self.world.chance(0.5)
        most = LONGEST_SKEW_US if far else LONGEST_JUMP_US
        self.host.jump(self.world.between(-most, most))
