"""Every invariant of the scheduler, checked by tests after each step.

Each function raises AssertionError that names what is wrong. Slow on purpose: all is
counted again from the holders and shapes, never taken from a running total.
"""

from collections import Counter
from collections.abc import Mapping

from grass.model.resources import GPU_KINDS, Capacity
from grass.scheduler.dispatch import Dispatch
from grass.scheduler.fleet import Fleet
from grass.scheduler.prefetch import PrefetchChains
from grass.scheduler.shapes import Gate, QueueGate, Shape, ShapeState, job_of
from grass.scheduler.worker_units import ViewUsage, WorkerUnits, gpus_in


def check_fleet(fleet: Fleet) -> None:
    """For each unit, free plus what is held is the capacity; views count right."""
    for worker in fleet.workers.values():
        _check_units(worker)
        _check_views(fleet, worker)
    for holder, held in fleet.holds.items():
        assert held.worker.holders.get(holder) is held.allocation, f"holder {holder}"
        assert fleet.workers[held.worker.name] is held.worker, f"worker of {holder}"
    holders = sum(len(worker.holders) for worker in fleet.workers.values())
    assert holders == len(fleet.holds), "a holder is known to its worker only"


def check_prefetched(fleet: Fleet, dispatch: Dispatch, chains: PrefetchChains) -> None:
    """Each prefetched job is in one chain, which begins with a holder of units."""
    assert len(chains.followers) == len(chains.predecessors), "a chain is broken"
    for predecessor, job in chains.followers.items():
        assert chains.predecessors[job] == predecessor, f"job {job} is in two chains"
        assert chains.first_of(job) in fleet.holds, f"job {job} has no predecessor"
        assert job not in fleet.holds, f"prefetched job {job} holds units"
        assert job not in dispatch.shape_of, f"prefetched job {job} waits as well"


def check_gates(
    fleet: Fleet, queues: Mapping[str, QueueGate], limiters: Mapping[str, Gate]
) -> None:
    """Each queue and limiter counts exactly the holders that name it."""
    running: Counter[Gate] = Counter()
    for held in fleet.holds.values():
        queue, counting, _ = held.gates
        running.update(counting if queue is None else (queue, *counting))
    for gate in (*queues.values(), *limiters.values()):
        assert gate.running == running[gate], f"{gate.name} counts {gate.running}"


def check_types(dispatch: Dispatch) -> None:
    """Each type knows its shapes, and its profilers hold units for unknown models."""
    fleet = dispatch.fleet
    for name, job_type in fleet.types.items():
        assert job_type.name == name, f"type {name}"
        assert not job_type.is_unused(), f"type {name} is not used"
        for model, holder in job_type.profilers.items():
            assert model not in job_type.amounts, f"{name} is known on {model}"
            assert fleet.holds[holder].gates.learned is job_type, f"holder {holder}"
        for shape in job_type.shapes:
            assert dispatch.shapes.get(shape.key) is shape, f"shape of {name}"
    for shape in dispatch.shapes.values():
        learned = shape.gates.learned
        assert learned is None or fleet.types.get(learned.name) is learned
        assert learned is None or shape in learned.shapes, f"{shape.key} is lost"


def check_shapes(dispatch: Dispatch) -> None:
    """Each job waits in one shape, each shape where it will be found again."""
    waiting: Counter[QueueGate] = Counter()
    for key, shape in dispatch.shapes.items():
        assert shape.key == key, "shape under a wrong key"
        orders = shape.orders()
        assert orders, f"empty shape {key}"
        assert shape.head == orders[0], f"head of {key}"
        assert shape.count == len(orders), f"{key} counts {shape.count}"
        assert shape in shape.queue.shapes, f"{key} is not known to its queue"
        for order in orders:
            job = job_of(order)
            assert dispatch.shape_of.get(job) is shape, f"job {job} is in two shapes"
            assert dispatch.order_of(job) == order, f"job {job} has two priorities"
        waiting[shape.queue] += len(orders)
        _check_state(dispatch, shape)
    assert sum(waiting.values()) == len(dispatch.shape_of), "a job is in no shape"
    for queue, count in waiting.items():
        assert queue.waiting == count, f"{queue.name} counts {queue.waiting} waiting"
    for bucket in dispatch.index.every_bucket():
        bucket.check()


def check_reservations(dispatch: Dispatch) -> None:
    """A reservation is with its worker and its job, and within the capacity."""
    reservations = dispatch.reservations
    for order, (worker, shape) in reservations.active.items():
        job = job_of(order)
        assert worker.reservation is not None, f"reservation of {job}"
        assert worker.reservation.job == job, f"reservation of {job}"
        assert worker.reservation.order == order, f"reservation of {job}"
        assert order in shape.orders(), f"reservation of {job}, which does not wait"
        if not dispatch.is_outdated():
            _check_within(
                worker.reservation.allocation, worker.capacity, f"reservation of {job}"
            )
    for worker in dispatch.fleet.workers.values():
        reservation = worker.reservation
        assert reservation is None or reservation.order in reservations.active, (
            f"{worker.name} drains"
        )
    for order, shape in reservations.due.items():
        assert order in shape.orders(), f"order {order} is due but does not wait"


def _check_units(worker: WorkerUnits) -> None:
    held: Counter[tuple[str, str]] = Counter()
    for allocation in worker.holders.values():
        for kind, units in allocation.items():
            for unit, amount in units.items():
                held[kind, unit] += amount
    for kind, units in worker.capacity.items():
        for unit, amount in units.items():
            free = worker.free[kind][unit]
            where = f"{kind} {unit} of {worker.name}"
            assert free >= 0, f"{where} is oversubscribed by {-free}"
            assert free + held.pop((kind, unit), 0) == amount, (
                f"{where} does not add up"
            )
    jobs = worker.gpu_jobs
    assert jobs is None or jobs.full == _full(worker), f"full: {jobs.full}"
    assert not held, f"{worker.name} is held from units it does not have: {held}"
    assert worker.free.keys() == worker.capacity.keys(), worker.name


def _full(worker: WorkerUnits) -> set[str]:
    """Count the GPUs that have as many holders as they may."""
    if worker.gpu_jobs is None:
        return set()
    counted = Counter(unit for one in worker.holders.values() for unit in gpus_in(one))
    return {unit for unit, jobs in counted.items() if jobs >= worker.gpu_jobs.most}


def _check_views(fleet: Fleet, worker: WorkerUnits) -> None:
    for name, view in worker.views.items():
        used: Counter[tuple[str, str]] = Counter()
        for holder, allocation in worker.holders.items():
            queue = fleet.holds[holder].gates.queue
            if queue is not None and queue.name == name:
                for kind in allocation.keys() & view.limits.keys():
                    for unit, amount in allocation[kind].items():
                        used[kind, unit] += amount
        counted = {(k, u): n for k, us in view.used.items() for u, n in us.items() if n}
        assert counted == dict(used), f"view of {name} on {worker.name} counts wrong"
        _check_available(worker, view)
        assert view.exceeded_when_set or not view.exceeded(), (
            f"view of {name} is exceeded"
        )


def _check_available(worker: WorkerUnits, view: ViewUsage) -> None:
    for kind, limits in view.limits.items():
        closed = worker.closed.get(kind, set())
        if kind in GPU_KINDS:
            closed = closed | _full(worker)
        open_units = worker.free.get(kind, {}).keys() - closed
        available = worker.available(view, kind)
        assert available.keys() == open_units & limits.keys(), f"room of {kind}"
        for unit, left in available.items():
            allowed = limits[unit] - view.used[kind].get(unit, 0)
            free = worker.free[kind][unit] - worker.withheld.get(kind, {}).get(unit, 0)
            assert left == max(0, min(free, allowed)), f"room on {kind} {unit}"


def _check_state(dispatch: Dispatch, shape: Shape) -> None:
    match shape.state:
        case ShapeState.READY:
            assert any(each is shape for _, each in dispatch.ready), "ready but lost"
        case ShapeState.PARKED:
            gate = shape.parked_at
            assert gate is not None, "parked nowhere"
            assert any(each is shape for _, each in gate.parked), "parked but lost"
        case ShapeState.BLOCKED:
            names = {worker.name for worker in shape.eligible or ()}
            assert shape.entries.keys() == names, f"{shape.key} is not indexed"
    if shape.state is not ShapeState.BLOCKED:
        assert not shape.entries, f"{shape.key} is indexed though not blocked"


def _check_within(allocation: Capacity, capacity: Capacity, what: str) -> None:
    for kind, units in allocation.items():
        for unit, amount in units.items():
            assert amount <= capacity.get(kind, {}).get(unit, 0), what
