"""What goes wrong, and when: drawn from the seed before anything happens.

Each run knows only some kinds of faults: what one kind hides another cannot find.
Deaths come between two events, or in the middle of one, at a crash point of the shell:
before and after each commit, between answers, between a record and its spawn.
"""

from collections.abc import Callable
from functools import partial

from tests.simulation.machine import Machine
from tests.simulation.world import MILLISECOND, SECOND

DEEPEST_CRASH_POINT = 12


class Faults:
    """The faults of one run."""

    def __init__(self, machine: Machine) -> None:
        """Draw which kinds there are."""
        self._machine = machine
        self._world = machine.world
        self._kinds: dict[str, Callable[[], None]] = {
            "daemon killed": self._kill_daemon,
            "broker killed": self._kill_broker,
            "worker killed": self._kill_worker,
            "keeper killed": self._kill_keeper,
            "rebooted": lambda: machine.reboot(power_lost=False),
            "power lost": lambda: machine.reboot(power_lost=True),
            "disk full": self._fill_disk,
            "I/O error": self._fail_commit,
            "clock jumped": machine.jump_clock,
            "suspended": machine.suspend,
            "link cut": machine.cut_link,
        }
        rng = self._world.rng
        chosen = rng.sample(sorted(self._kinds), rng.randint(3, len(self._kinds)))
        self._chosen = sorted(chosen)
        machine.flaps = "link cut" in chosen and rng.random() < 0.3

    def plan(self, until_us: int, count: int) -> None:
        """Decide when what happens."""
        for _ in range(count):
            kind = self._world.rng.choice(self._chosen)
            at = self._world.between(until_us // 20, until_us)
            self._world.after(at, f"fault: {kind}", partial(self._strike, kind))

    def _strike(self, kind: str) -> None:
        self._world.faults[kind] += 1
        self._kinds[kind]()

    def heal(self) -> None:
        """Let nothing go wrong any more."""
        machine = self._machine
        machine.store.full = machine.records.full = False
        machine.store.fails_in = 0
        machine.flaps = False
        for one in (machine.broker, machine.worker, machine.keeper):
            if one is not None:
                one.dies_in = 0

    # Deaths.

    def _depth(self) -> int:
        """Draw at which crash point to die; 0: at once."""
        rng = self._world.rng
        return 0 if rng.random() < 0.3 else rng.randint(1, DEEPEST_CRASH_POINT)

    def _kill_daemon(self) -> None:
        machine, depth = self._machine, self._depth()
        victim = machine.broker if self._world.chance(0.6) else machine.worker
        if victim is None or not depth:
            machine.kill_daemon()
        else:
            victim.on_killed, victim.dies_in = machine.kill_daemon, depth

    def _kill_broker(self) -> None:
        broker, depth = self._machine.broker, self._depth()
        if broker is None or not depth:
            self._machine.kill_broker()
        else:
            broker.on_killed, broker.dies_in = self._machine.kill_broker, depth

    def _kill_worker(self) -> None:
        worker, depth = self._machine.worker, self._depth()
        if worker is None or not depth:
            self._machine.kill_worker()
        else:
            worker.on_killed, worker.dies_in = self._machine.kill_worker, depth

    def _kill_keeper(self) -> None:
        keeper, depth = self._machine.keeper, self._depth()
        if keeper is None or not depth:
            self._machine.kill_keeper()
        else:
            keeper.dies_in = depth

    # The disk.

    def _fill_disk(self) -> None:
        machine = self._machine
        machine.store.full = True
        machine.records.full = self._world.chance(0.7)
        lasts = int(10 * MILLISECOND * 500 ** self._world.rng.random())
        self._world.after(min(lasts, 5 * SECOND), "disk has room", self._empty_disk)

    def _empty_disk(self) -> None:
        self._machine.store.full = self._machine.records.full = False

    def _fail_commit(self) -> None:
        self._machine.store.fails_in = self._world.rng.randint(1, 4)
