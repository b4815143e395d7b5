"""Each planted bug is found within a thousand seeds."""

import sys

import pytest

from tests.simulation.hunting import hunt
from tests.simulation.planting import BUGS


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_found(name: str) -> None:
    catch = hunt(name)
    sys.stdout.write(f"seed {catch.seed}: {catch.problem}\n")
    assert catch.seed is not None, f"{name}: {catch.problem}"
