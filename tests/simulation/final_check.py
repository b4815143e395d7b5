"""The end of a run: with all faults over and all workers connected, it must go idle.

Then every job has ended once, or waits for a known reason; no unit is held, no process
lives, nothing acknowledged is kept; and the journal alone has the end of every job.
"""

from grass.broker.core.attempts.foreign_calls import EndForeign
from grass.broker.core.calls import (
    ContinueJobs,
    ReleaseJobs,
    SetPaused,
    SetWorkerDrained,
)
from grass.broker.core.jobs import dependency_graph, eligibility
from grass.broker.core.rounds import LONGEST_PAUSE_S
from grass.keeper.core.attempt import attempts_of
from grass.model.jobs.lifecycle import JobState
from tests.simulation import replay
from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster
from tests.simulation.invariants import (
    check_numbers,
    check_state,
    check_twin,
    unfinished,
)
from tests.simulation.machine import Machine
from tests.simulation.world import SECOND, Violation

A_WHILE = 20 * SECOND


def drain(cluster: Cluster, clients: Clients) -> None:
    """Resume all that is paused or drained, and run until nothing happens any more."""
    world = cluster.world
    cluster.start_broker()
    for machine in cluster.machines:
        machine.start_worker()
    # First all clients get their answers, so that no later call pauses again.
    world.run(world.now + int(LONGEST_PAUSE_S * SECOND) + A_WHILE)
    clients.ask(lambda name: SetPaused(name, False, None))
    clients.ask(lambda name: SetPaused(name, False, "default"))
    for machine in cluster.others:
        clients.ask(lambda name, who=machine.id: SetWorkerDrained(name, who, False))  # type: ignore[misc]
    world.run(world.now + A_WHILE)
    # All are connected; the rest may take long, and needs no heartbeats.
    cluster.rest()
    # A renewal may be under way to a keeper still.
    world.run(world.now + SECOND)
    for machine in cluster.machines:
        machine.drop_leases()
    # First what is suspended and in no list of jobs: its keeper would never rest.
    _end_foreign(cluster, clients)
    _wake_suspended(cluster, clients)
    if world.chance(0.5):
        held = [job.id for job in unfinished(cluster) if job.state is JobState.HELD]
        if held:
            clients.ask(lambda name: ReleaseJobs(name, list(held)))
            world.run()


def _wake_suspended(cluster: Cluster, clients: Clients) -> None:
    """Continue suspended jobs; late calls may still suspend others."""
    world = cluster.world
    while True:
        world.run(world.now + A_WHILE)
        jobs = unfinished(cluster)
        still = [job.id for job in jobs if job.suspended_since is not None]
        if not still:
            break
        clients.ask(lambda name, jobs=still: ContinueJobs(name, list(jobs)))  # type: ignore[misc]
    world.run()


def _end_foreign(cluster: Cluster, clients: Clients) -> None:
    """End what the database knows nothing of: suspended, it would stay for ever."""
    broker = cluster.broker
    assert broker is not None
    for machine in cluster.machines:
        names = [one.name for one in broker.state.foreign.of(machine.id)]
        if names:
            cluster.auditor.ended_by_hand.update(names)
            clients.ask(lambda name, who=machine.id: EndForeign(name, who, ["all"]))  # type: ignore[misc]
    cluster.world.run(cluster.world.now + A_WHILE)


def check(cluster: Cluster, clients: Clients) -> None:
    """Check what must be true when idle."""
    _check_up(cluster)
    _check_answered(clients)
    _check_ends(cluster)
    check_numbers(cluster)
    _check_keys(cluster, clients)
    _check_nothing_held(cluster)
    replay.check(cluster.disk)


def _check_up(cluster: Cluster) -> None:
    if cluster.broker is None:
        raise Violation("at rest, and the broker is not up")
    for machine in cluster.machines:
        if machine.worker is None or machine.keeper is None:
            raise Violation(f"at rest, and not everything of {machine.id} is up")
        if not cluster.broker.state.workers[machine.id].connected:
            raise Violation(f"at rest, and {machine.id} is not connected")


def _check_answered(clients: Clients) -> None:
    for number, request in enumerate(clients.requests, 1):
        if not request.answered:
            raise Violation(f"request {number} was never answered")


def _check_ends(cluster: Cluster) -> None:
    """Every job has ended, or is held, or waits for one that is."""
    broker = cluster.broker
    assert broker is not None
    left = {job.id: job for job in unfinished(cluster)}
    held = {job.id for job in left.values() if job.state is JobState.HELD}
    for _ in left:
        for job in left.values():
            needs = cluster.disk.specs[job.spec].after
            waits = dependency_graph.open_dependencies(broker.state, job) > 0
            if job.state is JobState.WAITING and waits:
                held |= (
                    {job.id}
                    if any(not held.isdisjoint(n.jobs) for n in needs)
                    else set()
                )
    for job in left.values():
        reason = eligibility.why(broker.state, broker.state.jobs[job.id])
        if job.id not in held or not reason:
            raise Violation(f"job {job.id} is {job.state} at rest: {reason}")


def _check_keys(cluster: Cluster, clients: Clients) -> None:
    """A call that was sent several times made its jobs once."""
    found: dict[str, list[int]] = {}
    kept = {job.id: job.name for job in cluster.disk.jobs.values()}
    for number, name in sorted({**cluster.auditor.forgotten, **kept}.items()):
        found.setdefault(name, []).append(number)
    for name, jobs in found.items():
        sizes = {len(jobs), jobs[-1] - jobs[0] + 1}
        asked = clients.size_of(name)
        if sizes != {asked}:
            raise Violation(f"{name} asked for {asked} jobs and got {jobs}")


def _check_nothing_held(cluster: Cluster) -> None:
    broker = cluster.broker
    assert broker is not None
    for machine in cluster.machines:
        _check_machine(cluster, machine)
        scheduler = broker.state.scheduler
        if scheduler.holders(machine.id) or broker.state.foreign:
            raise Violation(f"the broker holds {scheduler.holders(machine.id)}")
        if scheduler.free(machine.id) != machine.capacity:
            raise Violation(f"units leaked: {scheduler.free(machine.id)}")
    if broker.state.removals.waiting or cluster.disk.removals:
        raise Violation(f"at rest, to be removed: {broker.state.removals.waiting}")
    check_state(broker)
    if broker.all_committed:
        check_twin(cluster, broker)


def _check_machine(cluster: Cluster, machine: Machine) -> None:
    worker, keeper = machine.worker, machine.keeper
    assert worker is not None
    assert keeper is not None
    left = machine.processes.output & cluster.auditor.pruned_output.of(machine.id)
    if left:
        raise Violation(f"{machine.id} keeps output of pruned jobs: {sorted(left)}")
    if machine.processes.living():
        raise Violation(f"something lives at rest: {cluster.witness.alive()}")
    table = worker.core._table
    if table.attempts or table.units._allocated or table.followers:
        raise Violation(f"{machine.id} keeps {list(table.attempts)}")
    if keeper.core.attempts:
        raise Violation(f"the keeper keeps {list(keeper.core.attempts)}")
    if attempts_of(machine.records.entries):
        raise Violation("the records keep attempts that are forgotten")
