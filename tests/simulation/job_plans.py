"""What a job's program does, drawn from the seed, the job and the attempt alone.

So a plan does not depend on the history: a job that runs once in one and twice in
another does the same each time.
"""

from random import Random
from typing import NamedTuple

from tests.simulation.world import MILLISECOND, SECOND

DIES, IGNORES, LEAVES = "dies", "ignores", "leaves"
"""What a program does when it is told to end."""
SHORT, MIXED, LONG = "short", "mixed", "long"
"""How long most programs of a run take."""
_RUNS = {
    SHORT: (2 * MILLISECOND, 30 * MILLISECOND),
    MIXED: (2 * MILLISECOND, 8 * SECOND),
    LONG: (300 * MILLISECOND, 50 * SECOND),
}


class Child(NamedTuple):
    """A process that the program leaves behind."""

    outlives_us: int
    on_term: str


class Plan(NamedTuple):
    """What one attempt's program does."""

    run_us: int
    status: int
    """As `wait` returns it."""
    on_term: str = DIES
    children: tuple[Child, ...] = ()
    cannot_start: str | None = None
    careful_us: int | None = None
    """How long a careful start takes; None: the fast one."""
    is_missing: bool = False
    """Whether it cannot start as the machine has no such folder."""


FOLDERS = ("/d1", "/d2", "/d3", "/d4")
"""Those that some machines do not have."""


def lacks(seed: int, machine: str, folder: str | None) -> bool:
    """Draw whether a machine has no such folder."""
    return folder in FOLDERS and Random(f"{seed} {machine} {folder}").random() < 0.5


def plan_of(seed: int, job: int, number: int, pace: str) -> Plan:
    """Draw what an attempt does; in some runs most jobs are very short."""
    rng = Random((seed * 1_000_003 + job) * 1_009 + number)
    if rng.random() < 0.02:
        return Plan(0, 0, cannot_start="could not start: no such program")
    shortest, longest = _RUNS[pace if rng.random() < 0.9 else MIXED]
    run_us = int(shortest * (longest / shortest) ** rng.random())
    if pace == LONG:
        # As many that outlast a lease as do not.
        run_us = int(rng.random() * longest)
    return Plan(
        run_us,
        _status(rng),
        rng.choices((DIES, IGNORES, LEAVES), (0.7, 0.2, 0.1))[0],
        _children(rng),
        careful_us=int(rng.random() * 50_000) if rng.random() < 0.1 else None,
    )


def _status(rng: Random) -> int:
    luck = rng.random()
    if luck < 0.65:
        return 0
    if luck < 0.9:
        return rng.choice((1, 2, 7, 137)) << 8
    return rng.choice((6, 9, 11))


def _children(rng: Random) -> tuple[Child, ...]:
    if rng.random() > 0.15:
        return ()
    return tuple(
        Child(
            int(5 * MILLISECOND * 1000 ** rng.random()),
            IGNORES if rng.random() < 0.4 else DIES,
        )
        for _ in range(rng.randint(1, 2))
    )
