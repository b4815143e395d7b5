"""A few planted bugs are found, by the first seeds; `make simulate` finds all."""

import pytest

from tests.simulation.planting import bugs, hunt

FEW = {
    "the number of an attempt that ran is used again": 0,
    "a lost attempt is tried again unasked": 0,
    "dependencies are ignored after a restart": 0,
    "a successor forgets what its predecessor had on record": 2,
    "an attempt that could not be forked stays on record as begun": 2,
    "an end has the time of its worker's clock": 5,
    "the keeper takes a missing exit code for success": 5,
    "a change in slices does not hold the spec that it gives to jobs": 7,
    "a removal of output is forgotten at a crash": 12,
    "an exit is forgotten before it is committed": 0,
    "a worker is believed about attempts that it was not given": 75,
    "an attempt that the database knows nothing of is stopped": 0,
    "an attempt fails when its machine cannot fork": 2,
    "exits of an earlier boot are thrown away": 56,
    "a runner is handed an attempt while it has another": 4,
    "the end of a task is told while its orphans live": 3,
    "the code of a runner's last task is taken for that of the next": 7,
    "a fetched blob is not verified": 58,
    "a blob is removed while a call names it": 200,
    "a task starts before its blob is there": 9,
}
"""With the seed that has found each of them lately; another one may do so tomorrow."""


@pytest.mark.parametrize("name", FEW)
def test_a_planted_bug_is_found(name: str) -> None:
    catch = hunt(name, FEW[name])
    assert catch.seed is not None, f"{name}: {catch.problem}"


def test_the_few_are_in_the_list() -> None:
    assert set(FEW) < set(bugs())
