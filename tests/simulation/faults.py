"""Faults and their times, drawn from the seed before the run.

Each run has only some kinds of faults, because one kind may hide what another shows.
Processes are killed between two events, or within one, at a crash point of the shell:
before and after each commit, between answers, between a record and its spawn.
"""

from collections.abc import Callable
from functools import partial
from random import Random

from tests.simulation.cluster import Cluster
from tests.simulation.link_faults import LinkFaults
from tests.simulation.machine import Machine
from tests.simulation.processes import SIGKILL
from tests.simulation.world import MILLISECOND, SECOND

DEEPEST_CRASH_POINT = 12
LONGEST_FULL_US = 20 * SECOND
SHORTEST_SLEEP_US, LONGEST_SLEEP_US = SECOND, 20 * SECOND


class Faults:
    """The faults of one run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = cluster.world
        # A source of its own: runs without tasks have the history they had.
        self._runners = Random(f"runners {cluster.world.seed}")
        self._blobs = Random(f"faults of blobs {cluster.world.seed}")
        self._links = LinkFaults(cluster)
        self._kinds = self._possible()
        rng = self._world.rng
        chosen = rng.sample(sorted(self._kinds), rng.randint(3, len(self._kinds)))
        self._chosen = sorted(chosen)
        if cluster.leases:
            # Only a long time without the broker exercises a lease.
            self._chosen += self._long_ones() * (len(chosen) // 3)
        for machine in cluster.machines:
            machine.flaps = "link cut" in chosen and rng.random() < 0.3

    def _possible(self) -> dict[str, Callable[[], None]]:
        """Return the faults that this cluster may have, by name."""
        cluster = self._cluster
        kinds: dict[str, Callable[[], None]] = {
            "daemon killed": self._kill_daemon,
            "broker killed": self._kill_broker,
            "worker killed": self._kill_worker,
            "keeper killed": self._kill_keeper,
            "rebooted": lambda: cluster.reboot(self._some(), power_lost=False),
            "power lost": lambda: cluster.reboot(self._some(), power_lost=True),
            "files lost": self._lose_files,
            "socket deleted": self._delete_socket,
            "disk full": self._fill_disk,
            "worker full": self._fill_worker,
            "forks fail": self._fail_forks,
            "disk unreadable": self._hide_disk,
            "I/O error": self._fail_commit,
            "clock jumped": lambda: cluster.jump_clock(self._some()),
            "suspended": self._suspend,
            "link cut": lambda: self._some().cut_link(),
        }
        return {**kinds, **self._links.kinds()} if cluster.others else kinds

    def _long_ones(self) -> list[str]:
        return self._links.long_ones()

    def plan(self, until_us: int, count: int) -> None:
        """Draw kinds and times."""
        for _ in range(count):
            kind = self._world.rng.choice(self._chosen)
            at = self._world.between(until_us // 20, until_us)
            strike = partial(self._strike, kind)
            self._world.elsewhere.after(at, f"fault: {kind}", strike)
        for _ in range(self._runners.choice((0, 0, 2, 8))):
            at = self._runners.randint(until_us // 20, until_us)
            what = self._runners.choice((self._kill_runner, self._kill_handing))
            self._world.elsewhere.after(at, "a fault of runners", what)

        self._plan_blobs(until_us)

    def _plan_blobs(self, until_us: int) -> None:
        """Spoil some pieces that are read, and kill what takes part in a fetch."""
        self._cluster.spoiled.share = self._blobs.choice((0.0, 0.05, 0.15))
        for _ in range(self._blobs.choice((0, 2, 6))):
            at = self._blobs.randint(until_us // 20, until_us)
            self._world.elsewhere.after(at, "a fault of blobs", self._kill_fetching)

    def _kill_fetching(self) -> None:
        """Kill something when the next piece of a blob has come."""
        cluster, machine = self._cluster, self._blobs.choice(self._cluster.machines)
        what = self._blobs.choice(("worker", "keeper", "broker", "link", "power"))
        kills: dict[str, Callable[[], object]] = {
            "worker": machine.kill_worker,
            "keeper": machine.kill_keeper,
            "broker": cluster.kill_broker,
            "link": machine.cut_link,
            "power": lambda: cluster.reboot(machine, power_lost=True),
        }

        def strike() -> None:
            self._world.faults[f"{what} lost in a fetch"] += 1
            kills[what]()

        if machine.worker is not None:
            machine.worker.fetches.dies = strike

    def _strike(self, kind: str) -> None:
        self._world.faults[kind] += 1
        self._kinds[kind]()

    def heal(self) -> None:
        """End all faults."""
        cluster = self._cluster
        cluster.store.heal()
        cluster.store.fails_in = 0
        cluster.spoiled.share = 0.0
        if cluster.broker is not None:
            cluster.broker.dies_in = 0
        for machine in cluster.machines:
            machine.heal()
            cluster.wake(machine)

    def _some(self) -> Machine:
        return self._world.rng.choice(self._cluster.machines)

    # Deaths.

    def _depth(self) -> int:
        """Draw at which crash point to die; 0: at once."""
        rng = self._world.rng
        return 0 if rng.random() < 0.3 else rng.randint(1, DEEPEST_CRASH_POINT)

    def _kill_daemon(self) -> None:
        cluster, depth = self._cluster, self._depth()
        worker = cluster.home.worker
        victim = cluster.broker if self._world.chance(0.6) else worker
        if victim is None or not depth:
            cluster.kill_daemon()
        else:
            victim.on_killed, victim.dies_in = cluster.kill_daemon, depth

    def _kill_broker(self) -> None:
        broker, depth = self._cluster.broker, self._depth()
        if broker is None or not depth:
            self._cluster.kill_broker()
        else:
            broker.on_killed, broker.dies_in = self._cluster.kill_broker, depth

    def _kill_worker(self) -> None:
        machine, depth = self._some(), self._depth()
        worker = machine.worker
        if worker is None or not depth:
            machine.kill_worker()
        else:
            worker.on_killed, worker.dies_in = machine.kill_worker, depth

    def _kill_keeper(self) -> None:
        machine, depth = self._some(), self._depth()
        if machine.keeper is None or not depth:
            machine.kill_keeper()
        else:
            machine.keeper.dies_in = depth

    def _kill_runner(self) -> None:
        """Kill a runner that waits for an attempt."""
        machine = self._runners.choice(self._cluster.machines)
        idle = machine.processes.idle_runners()
        if idle and machine.keeper is not None:
            self._world.faults["runner killed"] += 1
            machine.processes.die(self._runners.choice(idle), SIGKILL)

    def _kill_handing(self) -> None:
        """Kill a keeper before it hands the next task to a runner."""
        keeper = self._runners.choice(self._cluster.machines).keeper
        if keeper is not None:
            self._world.faults["killed handing over"] += 1
            keeper.dies_handing = True

    # Disks and clocks.

    def _fill_disk(self) -> None:
        cluster = self._cluster
        cluster.store.fill()
        cluster.home.records.full = self._world.chance(0.7)
        lasts = self._world.spread(10 * MILLISECOND, LONGEST_FULL_US)
        self._world.elsewhere.after(lasts, "disk has room", self._empty_disk)

    def _empty_disk(self) -> None:
        self._cluster.store.heal()
        self._cluster.home.records.full = False

    def _lose_files(self) -> None:
        """Lose files of the broker's own machine to a power cut."""
        home = self._cluster.home
        home.loses_files = True
        self._cluster.reboot(home, power_lost=True)

    def _fill_worker(self) -> None:
        """Fill the disk of a keeper's machine, not the broker's."""
        machine = self._some()
        machine.records.full = True
        self._mend_later(machine, lambda: setattr(machine.records, "full", False))

    def _fail_forks(self) -> None:
        machine = self._some()
        machine.processes.full = True
        self._mend_later(machine, lambda: setattr(machine.processes, "full", False))

    def _mend_later(self, machine: Machine, mend: Callable[[], None]) -> None:
        """Let a machine start jobs again later, perhaps with killed processes."""
        lasts = self._world.spread(10 * MILLISECOND, LONGEST_FULL_US)
        elsewhere = self._world.elsewhere
        elsewhere.after(lasts, "mended", mend)
        if self._world.chance(0.5):
            # Soon, before all attempts are returned: first the worker, then the keeper.
            soon = self._world.spread(MILLISECOND, SECOND)
            later = soon + self._world.spread(10 * MILLISECOND, 2 * SECOND)
            elsewhere.after(soon, "killed", machine.kill_worker)
            elsewhere.after(later, "killed", machine.kill_keeper)

    def _delete_socket(self) -> None:
        """Delete a keeper's socket, which only the next worker there needs."""
        machine = self._some()
        machine.lose_socket()
        if self._world.chance(0.5):
            machine.kill_worker()

    def _hide_disk(self) -> None:
        """Make the disk unreadable, and mostly full as well."""
        store = self._cluster.store
        store.unreadable, store.full = True, self._world.chance(0.7)
        lasts = self._world.spread(10 * MILLISECOND, LONGEST_FULL_US)
        self._world.elsewhere.after(lasts, "disk can be read", store.heal)

    def _fail_commit(self) -> None:
        self._cluster.store.fails_in = self._world.rng.randint(1, 4)

    def _suspend(self) -> None:
        lasts = self._world.spread(SHORTEST_SLEEP_US, LONGEST_SLEEP_US)
        self._cluster.suspend(self._some(), lasts)
