"""Seeds that no run had before, and the file of those that failed.

A run draws its first seed once and counts on from there. The number is kept in the
environment, so that all processes of a run have the same one, and so that it can be
given: `SIMULATION_FIRST=7000000 make test`. A seed that fails is written to a file that
every later run tries again, until its line is moved to the seeds that are always run.
"""

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.runner import Result

FIRST = "SIMULATION_FIRST"
FAILED = Path(__file__).with_name("failed_seeds.txt")
SEEDS = {"broker": "seeds.txt", "brokers": "brokers_seeds.txt"}
"""The files of the seeds that are always run, by kind."""


def first_seed() -> int:
    """Return the first seed of this run: a given one, or one that is drawn once."""
    drawn = random.SystemRandom().randrange(10**9, 10**12)
    return int(os.environ.setdefault(FIRST, str(drawn)))


def failed(kind: str) -> list[int]:
    """Return the seeds that failed, of one kind."""
    lines = FAILED.read_text().splitlines() if FAILED.exists() else []
    return [int(seed) for seed, its_kind, _ in map(_parts, lines) if its_kind == kind]


def keep(result: "Result") -> str:
    """Write a seed that failed to the file; return the report."""
    problem = " ".join((result.problem or "").split())
    if result.seed not in failed(result.kind):
        with FAILED.open("a") as file:
            file.write(f"{result.seed} {result.kind} {problem}\n")
    always = SEEDS[result.kind]
    line = f"once mended, add to {always}: {result.seed} {problem}"
    return f"{result.report()}\nkept in {FAILED}; {line}"


def _parts(line: str) -> list[str]:
    return line.split(" ", 2)
