"""What a broker keeps in mind: what always holds of it, and what a restart keeps."""

from collections import Counter

from msgspec import structs

from grass.broker.core.jobs import eligibility
from grass.broker.core.state import State
from grass.broker.core.workers.units import known_capacity
from grass.broker.core.workers.worker_memory import Declared
from grass.errors import NotFound
from grass.model.jobs.lifecycle import JobState


def check(state: State) -> None:
    """Walk every invariant of a broker's memory."""
    state.scheduler.check()
    running = {job.id for job in state.jobs.values() if job.state is JobState.RUNNING}
    assert running == set(state.attempts)
    for kept in JobState:
        unfinished = sum(job.state is kept for job in state.jobs.values())
        assert state.totals.states[kept] >= unfinished
    assert +state.totals.unfinished == Counter(job.queue for job in state.jobs.values())
    if not state.bulk.busy:
        users = Counter(job.spec for job in state.jobs.values())
        assert state.specs._users == users, "a spec has users that are not there"
    waiting = sum(job.state is JobState.QUEUED for job in state.jobs.values())
    assert state.scheduler.waiting() == waiting or state.bulk.enqueues
    counted = Declared(state.queues.values())
    for worker in state.workers.values():
        _check_units(state, worker.id)
        faulty = {fault.unit for fault in worker.gpu_faults.values()}
        assert state.unit_notes[worker.id].faulty == faulty, "a dead GPU is offered"
        named = dict(state.declared.largest(worker.id, {}))
        assert named == dict(counted.largest(worker.id, {}))


def _check_units(state: State, worker: str) -> None:
    held: dict[tuple[str, str], int] = {}
    for attempt in state.attempts.values():
        if attempt.worker == worker and attempt.after is None:
            for kind, amounts in attempt.allocation.items():
                for unit, amount in amounts.items():
                    held[kind, unit] = held.get((kind, unit), 0) + amount
    has = known_capacity(state, state.workers[worker])
    for (kind, unit), amount in held.items():
        # One that was removed or made smaller is kept by who holds it, to its end.
        kept = _kept(state, worker, kind, unit)
        most = has.get(kind, {}).get(unit, amount)
        assert amount <= max(most, kept), f"{kind} {unit} is sold twice"


def _kept(state: State, worker: str, kind: str, unit: str) -> int:
    """Return what the scheduler, which is checked itself, counts of a unit."""
    try:
        return state.scheduler.capacity(worker).get(kind, {}).get(unit, 0)
    except NotFound:
        return 0


def memory(state: State) -> dict[str, object]:
    """Give all that must be the same after a restart."""
    specs = {job.spec: state.specs[job.spec] for job in state.jobs.values()}
    needed = {spec.base_env for spec in specs.values() if spec.base_env is not None}
    return {
        "jobs": state.jobs,
        "attempts": state.attempts,
        "queues": state.queues,
        "workers": {
            worker.id: structs.replace(
                worker,
                connected=False,
                heard_at=None,
                skew_s=0.0,
                unable="",
                shrinks=False,
            )
            for worker in state.workers.values()
        },
        "tokens": state.tokens,
        "profiles": list(state.profiles),
        "specs": specs,
        "envs": {number: state.envs.get(number) for number in needed},
        "calls": state.answered.by_key,
        "counts": state.totals.states,
        "last_job": state.last_job,
        "paused": state.paused,
        "restored": state.restored_last_job,
        "output_bytes": state.totals.output_bytes,
        "removals": (state.removals.last, state.removals.waiting),
        "arrays": {
            first: (array.unfinished, array.fails)
            for first, array in state.arrays.active.items()
        },
        "dependencies": _dependencies(state),
        "next time": eligibility.next_time(state),
    }


def _dependencies(state: State) -> dict[str, object]:
    known = state.dependencies
    return {
        "open": {
            spec: (group.open, sorted(group.members))
            for spec, group in known.groups.items()
        },
        "dependents": known.dependents,
        "entries": {owner: count for owner, count in known.entries.items() if count},
        "ends": {
            job: end for job, end in known.ends.items() if job in known.dependents
        },
    }
