"""Short texts about jobs: units, requests, ends, owners."""

import pytest

from grass.cli.printing.wording import asked, units


def test_units_are_written_without_noise() -> None:
    assert units({"gpu": {"0": 1, "1": 1}}) == "gpu:0,1"
    assert units({"gpu": {"0": 0.5}, "cpu": {"3": 1}}) == "gpu:0(0.5) cpu:3"
    assert units({"ram": {"0": 3.5}}) == "ram:3.5G"
    assert units({"vram": {"0": 1, "1": 10}}) == "vram:0(1G),1(10G)"
    assert units({"ram": {"near": 1, "far": 0.25}}) == "ram:near(1G),far(256M)"


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"gpu": 0.5, "ram": 8}, "gpu 0.5, ram 8G"),
        ({"ram": 0.4883, "cpu": 1}, "ram 500M, cpu 1"),
        ({"of-a-later-version": "much"}, "of-a-later-version much"),
    ],
)
def test_a_request_is_written_with_its_units(
    request_: dict[str, object], text: str
) -> None:
    assert asked(request_) == text
