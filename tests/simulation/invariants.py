"""Invariants that must hold after every step, in memory and on disk.

Cheap ones are checked after every event, costly ones now and then: the scheduler's own
invariants, and that a broker loaded from the disk would have exactly the same state.
"""

from collections import Counter

from grass.broker.core.attempts import avoided
from grass.broker.core.attempts.placing import MOST_SKIPPED
from grass.broker.core.broker_core import BrokerCore
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.worker.core.attempt_table import AttemptTable
from tests.simulation.broker_shell import SimBroker
from tests.simulation.cluster import Cluster
from tests.simulation.link_faults import FAR_ID
from tests.simulation.machine import Machine
from tests.simulation.witness import Witness
from tests.simulation.world import SECOND, Host, Violation
from tests.support.brokerage import check, memory

STATE_EVERY, TWIN_EVERY = 41, 173
LONGEST_HELD_US = 10 * SECOND
"""Longer than a keeper stalls."""
_NOTHING = Counter[tuple[str, str]]()


class InvariantChecker:
    """Checks a cluster after every event."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._steps = 0
        self._holds_since: dict[str, int] = {}
        """Since when a machine holds attempts that it cannot start."""
        self._line = 0

    def check(self, host: Host) -> None:
        """Check what is due after an event on a host."""
        self._steps += 1
        cluster = self._cluster
        for machine in cluster.machines:
            # A fault may be about any machine, all else about its own.
            if host is machine.host or host is cluster.world.elsewhere:
                check_worker(machine, cluster.witness)
                self._check_given_back(machine)
        if cluster.disk.last_event != self._line:
            check_order(cluster, self._line)
            self._line = cluster.disk.last_event
        if cluster.broker is not None:
            if self._steps % STATE_EVERY == 0:
                check_state(cluster.broker)
                check_numbers(cluster)
            if self._steps % TWIN_EVERY == 0 and cluster.broker.all_committed:
                check_twin(cluster, cluster.broker)

    def _check_given_back(self, machine: Machine) -> None:
        """Check that a machine that cannot start jobs does not hold any for long."""
        worker, since = machine.worker, self._holds_since
        if worker is None or machine.away or machine.keeper is None:
            since.pop(machine.id, None)
            return
        core, now = worker.core, self._cluster.world.now
        unable = core._readiness.returns_starts and core._keeper_ready
        if not (unable and any(one.may_be_returned for one in core._attempts.values())):
            since.pop(machine.id, None)
        elif now > since.setdefault(machine.id, now) + LONGEST_HELD_US:
            raise Violation(f"{machine.id} holds jobs that it cannot start")


def check_worker(machine: Machine, witness: Witness) -> None:
    """Check that a worker allocates no unit beyond its capacity.

    A new daemon counts an attempt with what its keeper remembers of its start, which
    is too much if it gave a part back since. Others may have that part. The broker says
    so in its answer to the hello, before it sends any start. A keeper whose predecessor
    could not record an exit takes the runner, which leaves, for one that runs.
    """
    worker = machine.worker
    if worker is None:
        return
    table = worker.core._table
    allocated = table.units._allocated
    if not allocated:
        return
    excused = _NOTHING if worker.welcomed else _given_up(table, witness)
    if machine.missed_exits:
        excused = excused + _over(table, witness)
    for (kind, unit), amount in allocated.items():
        most = machine.capacity.get(kind, {}).get(unit, 0) + excused[kind, unit]
        if not 0 < amount <= most:
            raise Violation(f"{machine.id} gives out {amount} of {kind} {unit}")


def _given_up(table: AttemptTable, witness: Witness) -> Counter[tuple[str, str]]:
    """Count what attempts are counted with and have given back while they ran."""
    surplus = Counter[tuple[str, str]]()
    for name, counted in table.reserved().items():
        run = witness.runs.get(name)
        keeps = counted if run is None else run.allocation
        for kind, amounts in counted.items():
            for unit, amount in amounts.items():
                surplus[kind, unit] += amount - keeps.get(kind, {}).get(unit, 0)
    return surplus


def _over(table: AttemptTable, witness: Witness) -> Counter[tuple[str, str]]:
    """Count what attempts are counted with that are over."""
    surplus = Counter[tuple[str, str]]()
    for name, counted in table.reserved().items():
        run = witness.runs.get(name)
        if run is not None and run.over:
            for kind, amounts in counted.items():
                surplus.update({(kind, unit): n for unit, n in amounts.items()})
    return surplus


def check_order(cluster: Cluster, since: int) -> None:
    """Check that no job was placed before a better one of its shape.

    `since` is the last event of the journal before the batch that placed it. A job that
    was decided for a worker which its kind has begun to avoid is decided anew in the
    next batch: others of its shape may start in this one.
    """
    disk = cluster.disk
    broker = cluster.broker
    if broker is None or broker.state.avoided.redirected:
        return
    kinds = bool(broker.state.avoided.kinds)
    waiting: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for job in disk.jobs.values():
        if job.state is JobState.QUEUED:
            place = (-job.priority, job.id)
            waiting.setdefault(_shape(cluster, job, kinds), []).append(place)
    for line in reversed(disk.events):
        if line.seq <= since:
            break
        if line.kind != "started" or line.job is None:
            continue
        job = disk.jobs[line.job]
        if job.state is JobState.RUNNING and job.attempts == line.attempt:
            ahead = [
                p
                for p in waiting.get(_shape(cluster, job, kinds), ())
                if p < _place(job)
            ]
            if ahead:
                raise Violation(f"job {job.id} overtakes job {ahead[0][1]}")


def _place(job: Job) -> tuple[int, int]:
    return (-job.priority, job.id)


def _shape(cluster: Cluster, job: Job, kinds: bool) -> tuple[object, ...]:
    """Return what jobs have alike that are placed in their order.

    With `kinds` some jobs avoid workers, and only those of a kind are alike.
    """
    spec = cluster.disk.specs[job.spec]
    limiter = job.array if spec.at_most is not None else None
    learned = spec.job_type if spec.auto_vram else None
    # Which workers a job avoids depends on its folder, and on its kind.
    folder = spec.cwd if spec.task is None else None
    kind = avoided.kind_name(job, spec) if kinds else None
    where = spec.worker, spec.labels, folder, kind
    return (job.queue, spec.request, *where, limiter, learned)


def check_state(broker: SimBroker) -> None:
    """Check the scheduler's own invariants and the broker's."""
    try:
        check(broker.state)
    except AssertionError as error:
        raise Violation(f"the broker's state: {error}") from error


def check_numbers(cluster: Cluster) -> None:
    """Check that invented attempts used up no ids and no attempt numbers."""
    disk = cluster.disk
    if int(disk.meta["last_job"]) >= FAR_ID:
        raise Violation(f"the ids of jobs go on above {disk.meta['last_job']}")
    for job in disk.jobs.values():
        if job.attempts > len(disk.attempts.get(job.id, ())) + MOST_SKIPPED:
            raise Violation(f"job {job.id} has had {job.attempts} attempts")


def check_twin(cluster: Cluster, broker: SimBroker) -> None:
    """Compare memory with that of a broker loaded from the disk."""
    due = broker.rounds.core.next_time()
    if due is not None and due <= cluster.home.host.wall_us:
        # A broker that is loaded now reads the clock before this one does.
        return
    twin = BrokerCore(cluster.store.load(0), cluster.home.host.wall_us)
    mine, other = memory(broker.state), memory(twin.state)
    for what, known in mine.items():
        if what != "calls" and other[what] != known:
            difference = _difference(known, other[what])
            raise Violation(f"{what} differ after a restart: {difference}")


def _difference(mine: object, other: object) -> str:
    if isinstance(mine, dict) and isinstance(other, dict):
        keys = [k for k in {**mine, **other} if mine.get(k) != other.get(k)]
        return "; ".join(f"{k}: {mine.get(k)} / {other.get(k)}" for k in keys[:1])
    return f"{mine} / {other}"


def unfinished(cluster: Cluster) -> list[Job]:
    """Return the jobs that have not ended."""
    return [job for job in cluster.disk.jobs.values() if job.state not in ENDED]
