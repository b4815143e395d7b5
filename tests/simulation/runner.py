"""One seed, from an empty disk to the final check."""

import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from grass.broker.core.jobs import blob_claims, bulk_calls
from grass.worker.core import blob_fetches
from tests.simulation import final_check
from tests.simulation.broker_faults import BrokerFaults
from tests.simulation.clients import Clients
from tests.simulation.cluster import Cluster
from tests.simulation.faults import Faults
from tests.simulation.invariants import InvariantChecker
from tests.simulation.many_brokers import ManyBrokers
from tests.simulation.world import SECOND, TAIL, Violation, World

SLICES = (500, 1, 2)
"""How many jobs a verb does at a time; small, so that few jobs take several slices."""

PIECE, UNNAMED_S = 4, 2.0
"""How many bytes of a blob are asked for at a time, and how long it is kept."""


@dataclass
class Result:
    """The outcome of a seed."""

    seed: int
    trace_hash: str
    events: int
    faults: Counter[str] = field(default_factory=Counter)
    problem: str | None = None
    tail: list[str] = field(default_factory=list)
    kind: str = "broker"
    """`brokers` where there are several of them."""

    @property
    def fault_count(self) -> int:
        """How many faults were injected."""
        return self.faults.total()

    def report(self) -> str:
        """Describe a failure, and how to reproduce it."""
        lines = [f"seed {self.seed}: {self.problem}", "the last events:"]
        lines += [f"  {line}" for line in self.tail]
        alone = f"python -m tests.simulation {self.seed} {self.kind}"
        lines.append(f"run it alone: .venv/bin/{alone}")
        return "\n".join(lines)


def kept_seeds(name: str) -> list[int]:
    """Read the seeds that once failed, of a file in this folder."""
    lines = Path(__file__).with_name(name).read_text().splitlines()
    return [int(line.split()[0]) for line in lines if line and line[0] != "#"]


def run_seed(seed: int, tail: int = TAIL) -> Result:
    """Run one seed; a violation is in the result, not raised."""
    return _result(seed, tail, Cluster, Faults)


def run_brokers_seed(seed: int, tail: int = TAIL) -> Result:
    """Run one seed with several brokers on one store."""
    result = _result(seed, tail, ManyBrokers, BrokerFaults)
    result.kind = "brokers"
    return result


def _result(
    seed: int, tail: int, cluster: type[Cluster], faults: type[Faults]
) -> Result:
    world = World(seed, tail)
    problem = None
    usual, bulk_calls.SLICE = bulk_calls.SLICE, SLICES[seed % len(SLICES)]
    sizes = blob_fetches.PIECE, blob_claims.UNNAMED_S
    blob_fetches.PIECE, blob_claims.UNNAMED_S = PIECE, UNNAMED_S
    try:
        _run(cluster(world), faults)
    except Violation as violation:
        problem = str(violation)
    except Exception as error:  # noqa: BLE001 -- any error is the seed's problem
        where = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"a defect: {error!r} in {where.name}, line {where.lineno}"
    finally:
        bulk_calls.SLICE = usual
        blob_fetches.PIECE, blob_claims.UNNAMED_S = sizes
    result = Result(seed, world.trace_hash(), world.events, world.faults, problem)
    result.tail = list(world.tail)
    return result


def _run(cluster: Cluster, kinds: type[Faults]) -> None:
    world = cluster.world
    rng = world.rng
    clients, faults = Clients(cluster), kinds(cluster)
    world.after_step.append(InvariantChecker(cluster).check)
    # A lease takes long to run out.
    until = rng.choice((40, 60) if cluster.leases else (5, 10, 20)) * SECOND
    clients.plan(until, rng.randint(14, 30), rng.randint(0, 25))
    faults.plan(until, rng.randint(3, 9))
    while world.elsewhere.now < until:
        # Clients and faults stand still while a lone machine sleeps.
        world.run(world.now + until - world.elsewhere.now)
    faults.heal()
    world.note("healed")
    final_check.drain(cluster, clients)
    final_check.check(cluster, clients)
