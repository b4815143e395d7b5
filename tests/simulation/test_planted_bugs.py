"""Each planted bug is found within a thousand seeds."""

import sys

import pytest

from tests.simulation import planted_across, planted_below, planted_in_broker
from tests.simulation.planting import BUGS
from tests.simulation.runner import run_seed

MOST_SEEDS = 1000
PLANTED = (planted_in_broker, planted_below, planted_across)
"""Modules that fill the list when they are imported."""


def seeds_until_found(name: str) -> tuple[int, str]:
    """Run seeds with a bug in the code until one of them fails."""
    with pytest.MonkeyPatch.context() as patch:
        BUGS[name](patch)
        for seed in range(MOST_SEEDS):
            problem = run_seed(seed).problem
            if problem is not None:
                return seed, problem
    return MOST_SEEDS, "never found"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    seed, problem = seeds_until_found(name)
    sys.stdout.write(f"found by seed {seed}: {problem}\n")
    assert seed < MOST_SEEDS, f"{name}: not found within {MOST_SEEDS} seeds"
