"""Several brokers on one store: fresh seeds, and bugs that they must find."""

import pytest

from tests.simulation import fresh_seeds
from tests.simulation.planting import bugs, hunt
from tests.simulation.runner import kept_seeds, run_brokers_seed

CHUNKS, CHUNK = 20, 50
FEW = {
    "a write is not checked against the epoch": 3,
    "the state is read before the epoch is taken": 14,
    "after a commit in doubt the state is read in the same epoch": 2,
    "the lead is taken while another has it": 0,
}
"""With the seed that has found each of them lately; another one may do so tomorrow."""


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_nothing_is_lost_or_run_twice_whoever_leads(chunk: int) -> None:
    first = fresh_seeds.first_seed() + chunk * CHUNK
    for seed in range(first, first + CHUNK):
        check_passes(seed)


@pytest.mark.parametrize("seed", kept_seeds("brokers_seeds.txt"))
def test_a_seed_of_several_brokers_that_once_failed_passes(seed: int) -> None:
    check_passes(seed)


def test_the_seeds_of_several_brokers_that_failed_in_earlier_runs_pass() -> None:
    for seed in fresh_seeds.failed("brokers"):
        check_passes(seed)


def check_passes(seed: int) -> None:
    """Run a seed that must not fail."""
    result = run_brokers_seed(seed)
    if result.problem is not None:
        pytest.fail(fresh_seeds.keep(result), pytrace=False)


def test_a_seed_with_several_brokers_has_the_same_trace_every_time() -> None:
    assert run_brokers_seed(3).trace_hash == run_brokers_seed(3).trace_hash


@pytest.mark.parametrize("name", FEW)
def test_a_planted_bug_of_several_brokers_is_found(name: str) -> None:
    catch = hunt(name, FEW[name])
    assert catch.seed is not None, f"{name}: {catch.problem}"


def test_the_few_are_in_the_list() -> None:
    assert set(FEW) < set(bugs())
