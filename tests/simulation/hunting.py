"""Looking for planted bugs: how many seeds it takes until one of them shows."""

from collections.abc import Iterator
from concurrent.futures import Executor
from typing import NamedTuple

import pytest

from tests.simulation import planted_across, planted_below, planted_in_broker
from tests.simulation.planting import BUGS
from tests.simulation.runner import run_seed

MOST_SEEDS = 1000
PLANTED = (planted_in_broker, planted_below, planted_across)
"""Modules that fill the list when they are imported."""


class Catch(NamedTuple):
    """A bug, the seed that found it, and what that saw."""

    bug: str
    seed: int | None
    problem: str


def hunt(bug: str) -> Catch:
    """Run seeds with a bug in the code until one of them fails."""
    with pytest.MonkeyPatch.context() as patch:
        BUGS[bug](patch)
        for seed in range(MOST_SEEDS):
            problem = run_seed(seed).problem
            if problem is not None:
                return Catch(bug, seed, problem)
    return Catch(bug, None, f"not found within {MOST_SEEDS} seeds")


def hunt_all(pool: Executor) -> Iterator[Catch]:
    """Look for each bug of the list."""
    return pool.map(hunt, BUGS)
