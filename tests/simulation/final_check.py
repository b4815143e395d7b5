"""Heal and drain: with every fault over and everybody connected, all must come to rest.

Then every job has ended once, or waits for a reason that can be told; nothing is held,
nothing lives, nothing is kept that was acknowledged; and the journal alone tells how
every job ended.
"""

from grass.broker import waiting
from grass.broker.calls import Continue, Release, SetPaused
from grass.keeper.attempt import attempts_of
from grass.model.lifecycle import JobState
from tests.simulation import replay
from tests.simulation.clients import Clients
from tests.simulation.invariants import check_books, check_twin, unfinished
from tests.simulation.machine import Machine
from tests.simulation.worker_shell import WORKER
from tests.simulation.world import SECOND, Violation

A_WHILE = 20 * SECOND


def drain(machine: Machine, clients: Clients) -> None:
    """Let everything go on that somebody stopped, until nothing happens any more."""
    world = machine.world
    machine.start_broker()
    machine.start_worker()
    # First whoever still asks gets an answer: the last word is ours.
    world.run(world.now + A_WHILE)
    clients.ask(lambda name: SetPaused(name, False, None))
    clients.ask(lambda name: SetPaused(name, False, "default"))
    _wake_suspended(machine, clients)
    if world.chance(0.5):
        held = [job.id for job in unfinished(machine) if job.state is JobState.HELD]
        if held:
            clients.ask(lambda name: Release(name, list(held)))
            world.run()


def _wake_suspended(machine: Machine, clients: Clients) -> None:
    """Continue whoever stands still; late wishes may still suspend others."""
    world = machine.world
    while True:
        world.run(world.now + A_WHILE)
        jobs = unfinished(machine)
        still = [job.id for job in jobs if job.suspended_since is not None]
        if not still:
            break
        clients.ask(lambda name, jobs=still: Continue(name, list(jobs)))  # type: ignore[misc]
    world.run()


def check(machine: Machine, clients: Clients) -> None:
    """Check what must be true at rest."""
    _check_up(machine)
    _check_answered(clients)
    _check_ends(machine)
    _check_keys(machine, clients)
    _check_nothing_held(machine)
    replay.check(machine.disk)


def _check_up(machine: Machine) -> None:
    if None in (machine.broker, machine.worker, machine.keeper):
        raise Violation("at rest, and not everything is up")


def _check_answered(clients: Clients) -> None:
    for number, request in enumerate(clients.requests, 1):
        if not request.answered:
            raise Violation(f"request {number} was never answered")


def _check_ends(machine: Machine) -> None:
    """Every job has ended, or is held, or waits for one that is."""
    broker = machine.broker
    assert broker is not None
    left = {job.id: job for job in unfinished(machine)}
    resting = {job.id for job in left.values() if job.state is JobState.HELD}
    for _ in left:
        for job in left.values():
            needs = machine.disk.specs[job.spec].after
            waits = waiting.open_dependencies(broker.state, job) > 0
            if job.state is JobState.WAITING and waits:
                resting |= {job.id} if any(n.job in resting for n in needs) else set()
    for job in left.values():
        reason = waiting.why(broker.state, broker.state.jobs[job.id])
        if job.id not in resting or not reason:
            raise Violation(f"job {job.id} is {job.state} at rest: {reason}")


def _check_keys(machine: Machine, clients: Clients) -> None:
    """Whoever asked for jobs, however often, has them once."""
    found: dict[str, list[int]] = {}
    for job in machine.disk.jobs.values():
        found.setdefault(job.name, []).append(job.id)
    for name, jobs in found.items():
        sizes = {len(jobs), jobs[-1] - jobs[0] + 1}
        asked = clients.size_of(name)
        if sizes != {asked}:
            raise Violation(f"{name} asked for {asked} jobs and got {jobs}")


def _check_nothing_held(machine: Machine) -> None:
    broker, worker, keeper = machine.broker, machine.worker, machine.keeper
    assert broker is not None
    assert worker is not None
    assert keeper is not None
    if machine.processes.living():
        raise Violation(f"something lives at rest: {machine.witness.alive()}")
    if worker.core._attempts or worker.core._ledger._held or worker.core._heirs:
        raise Violation(f"the worker keeps {list(worker.core._attempts)}")
    if keeper.core.attempts:
        raise Violation(f"the keeper keeps {list(keeper.core.attempts)}")
    if attempts_of(machine.records.entries):
        raise Violation("the records keep attempts that are forgotten")
    scheduler = broker.state.scheduler
    if scheduler.holders(WORKER) or broker.state.foreign:
        raise Violation(f"the broker holds {scheduler.holders(WORKER)}")
    if scheduler.free(WORKER) != machine.capacity:
        raise Violation(f"units leaked: {scheduler.free(WORKER)}")
    check_books(broker)
    if broker.settled:
        check_twin(machine, broker)
