"""Faults between machines, and of machines with a lease."""

from collections.abc import Callable

from grass.link.messages import RECALLED, Exited, Report, Returned, Started
from grass.model.amount_text import WHOLE
from grass.model.ids import AttemptId
from tests.simulation.cluster import Cluster
from tests.simulation.machine import LEASES_S, Machine
from tests.simulation.world import MILLISECOND, SECOND

LONGEST_CUT_US = 45 * SECOND
LONGEST_STALL_US = 6 * SECOND
"""Less than the margin that a broker adds to a lease."""
FAR_ID = 5_000
"""Higher than any id of a job in a run."""
LIFTS = (400, 1_000, 10**9)
"""How far above a job's last attempt an invented one is."""
ONE_CORE = {"cpu": {"0": WHOLE}}


class LinkFaults:
    """Faults of the machines that are not the broker's."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = cluster.world

    def kinds(self) -> dict[str, Callable[[], None]]:
        """Return the faults by name."""
        return {
            "cut for long": self._cut_off,
            "cut, keeper stalls": self._cut_off_and_stall,
            "cut, broker killed": self._cut_off_and_kill,
            "slept for long": self._sleep,
            "slept with a start": self._sleep_with_start,
            "keeper stalls": self._stall,
            "policy changed": self._change_policy,
            "policy, then cut": self._change_policy_and_cut,
            "disk long full": self._fill_disk,
            "speaks for others": self._lie,
            "makes attempts up": self._make_up,
        }

    def long_ones(self) -> list[str]:
        """Return the names of faults that outlast a lease."""
        return [
            "cut for long",
            "cut, keeper stalls",
            "slept for long",
            "slept with a start",
            "policy, then cut",
            "disk long full",
        ]

    def _some(self) -> Machine:
        """Choose a machine, more often one that has a lease."""
        others, rng = self._cluster.others, self._world.rng
        leased = [machine for machine in others if machine.lease_s is not None]
        return rng.choice(leased if leased and rng.random() < 0.7 else others)

    def _cut_off(self) -> None:
        self._some().cut_off(self._world.between(SECOND, LONGEST_CUT_US))

    def _sleep(self) -> None:
        lasts = self._world.between(LONGEST_CUT_US // 2, LONGEST_CUT_US)
        self._cluster.suspend(self._some(), lasts)

    def _sleep_with_start(self) -> None:
        """Let the keeper get the next start after the broker has given it up."""
        lasts = self._world.between(LONGEST_CUT_US // 2, LONGEST_CUT_US)
        self._some().sleeps_next_us = lasts

    def _cut_off_and_kill(self) -> None:
        self._cut_off()
        delay = self._world.spread(MILLISECOND, 10 * SECOND)
        kill = self._cluster.kill_broker
        self._cluster.home.host.after(delay, "the broker dies, too", kill)

    def _cut_off_and_stall(self) -> None:
        """Stall the keeper about when its lease runs out."""
        machine = self._some()
        machine.cut_off(self._world.between(10 * SECOND, LONGEST_CUT_US))
        lease_us = int((machine.lease_s or LEASES_S[0]) * SECOND)
        lasts = self._world.between(LONGEST_STALL_US // 2, LONGEST_STALL_US)
        stall = lambda: machine.stall_keeper(lasts)  # noqa: E731
        delay = self._world.between(lease_us // 2, lease_us)
        machine.host.after(delay, "stalls", stall)

    def _stall(self) -> None:
        lasts = self._world.spread(100 * MILLISECOND, LONGEST_STALL_US)
        self._some().stall_keeper(lasts)

    def _change_policy(self) -> None:
        """Start a machine's daemon again with other options."""
        machine = self._some()
        machine.lease_s = self._world.rng.choice((None, *LEASES_S))
        machine.kill_worker()

    def _change_policy_and_cut(self) -> None:
        """Cut the link while the broker learns of the lease."""
        world, others = self._world, self._cluster.others
        unleased = [machine for machine in others if machine.lease_s is None]
        machine = world.rng.choice(unleased or others)
        machine.lease_s = LEASES_S[0]
        machine.cuts_next_us = world.between(LONGEST_CUT_US // 2, LONGEST_CUT_US)
        machine.kill_worker()

    def _fill_disk(self) -> None:
        """Fill the broker's disk for so long that it seldom asks for reports."""
        self._cluster.store.fill()
        lasts = self._world.between(LONGEST_CUT_US // 2, LONGEST_CUT_US)
        self._world.elsewhere.after(lasts, "disk has room", self._cluster.store.heal)

    def _lie(self) -> None:
        """Let a worker report on an attempt that another one holds."""
        machine, rng = self._some(), self._world.rng
        disk = self._cluster.disk
        held = [
            attempt
            for tries in disk.attempts.values()
            for attempt in tries.values()
            if attempt.worker != machine.id
        ]
        if machine.worker is not None and held:
            attempt = rng.choice(held[-6:])
            who = AttemptId(disk.meta["cluster"], attempt.job, attempt.number)
            at = machine.host.wall_us
            lies = (
                Exited(str(who), at, 0),
                Started(str(who), 1, at),
                Returned(str(who), RECALLED),
            )
            machine.worker.say(rng.choice(lies))

    def _make_up(self) -> None:
        """Let a worker report attempts that it was not given, and later the truth."""
        machine, world = self._some(), self._world
        worker, cluster = machine.worker, self._cluster.disk.meta["cluster"]
        if worker is None:
            return
        names = [AttemptId(cluster, FAR_ID + world.rng.randint(0, FAR_ID), 1)]
        for job in list(self._cluster.disk.jobs.values())[-4:]:
            number = job.attempts + world.rng.choice(LIFTS)
            names.append(AttemptId(cluster, job.id, number))
        held = world.rng.choice(({}, ONE_CORE))
        worker.made_up = [Report(str(one), held, True, placed_at=1) for one in names]
        worker.report()

        def tell_truth() -> None:
            # A false report that was not sent until now is never sent.
            worker.made_up = []
            worker.report()

        delay = world.between(SECOND, LONGEST_CUT_US)
        machine.host.after(delay, "tells the truth", tell_truth, worker)
