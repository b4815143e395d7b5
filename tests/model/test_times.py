"""Points in time, written for people and programs."""

import pytest

from grass.model.times import LATEST, rfc3339


def test_a_time_is_written_with_milliseconds() -> None:
    assert rfc3339(None) is None
    assert rfc3339(1_500_000) == "1970-01-01T00:00:01.500Z"


@pytest.mark.parametrize("number", [LATEST, 2**63 - 1, 2**80])
def test_a_number_too_large_is_the_last_time_there_is(number: int) -> None:
    assert rfc3339(number) == "9999-12-30T23:59:59.999Z"


@pytest.mark.parametrize("number", [-(2**63), -(2**80)])
def test_a_number_too_small_is_the_first_time_there_is(number: int) -> None:
    assert rfc3339(number) == "0001-01-02T00:00:00.000Z"
