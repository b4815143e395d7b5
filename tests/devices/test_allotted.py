"""What of a host a pilot's worker has: what the engine gave it."""

import pytest

from grass.devices.probe import allotted_units
from grass.model.worker import FoundUnits, Unit

GIB = 1 << 30
HOST: FoundUnits = {
    "cpu": {"4": Unit(10000), "5": Unit(10000)},
    "ram": {"0": Unit(8 * 10000, {"bytes": 8 * GIB})},
}


@pytest.mark.parametrize(
    ("allotted", "cores"),
    [
        ("1,,", ["4"]),
        ("2,,", ["4", "5"]),
        (",,", ["4", "5"]),
        ("4,,", ["4", "5", "0", "1"]),
        ("6,,", ["4", "5", "0", "1", "2", "3"]),
    ],
)
def test_as_many_cores_as_the_engine_counts(allotted: str, cores: list[str]) -> None:
    assert list(allotted_units(HOST, allotted)["cpu"]) == cores


def test_memory_is_at_most_that_of_the_host() -> None:
    given = allotted_units(HOST, "1,4096,")["ram"]["0"]
    assert given.details["bytes"] == 4 * GIB
    most = allotted_units(HOST, "1,99999999,")["ram"]["0"]
    assert most.details["bytes"] == 8 * GIB


def test_gpus_that_the_engine_names_are_there() -> None:
    assert list(allotted_units(HOST, "1,,0,2")["gpu"]) == ["0", "2"]
