"""A few planted bugs are found, by the first seeds; `make simulate` finds all."""

import pytest

from tests.simulation.planting import bugs, hunt

FEW = (
    "the number of an attempt that ran is used again",
    "a lost attempt is tried again unasked",
    "dependencies are ignored after a restart",
    "a successor forgets what its predecessor had on record",
    "an attempt that could not be forked stays on record as begun",
    "an end has the time of its worker's clock",
    "the keeper takes a missing exit code for success",
    "a removal of output is forgotten at a crash",
    "an exit is forgotten before it is committed",
    "a worker is believed about attempts that it was not given",
    "an attempt fails when its machine cannot fork",
    "exits of an earlier boot are thrown away",
)


@pytest.mark.parametrize("name", FEW)
def test_a_planted_bug_is_found(name: str) -> None:
    catch = hunt(name)
    assert catch.seed is not None, f"{name}: {catch.problem}"


def test_the_few_are_in_the_list() -> None:
    assert set(FEW) < set(bugs())
