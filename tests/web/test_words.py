"""The page writes durations, sizes and endings as the command line does."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from grass.cli.printing.gpu_memory import size
from grass.cli.printing.quantities import brief, rough
from grass.cli.printing.wording import asked, ending, label, state, units

pytestmark = [pytest.mark.daemon, pytest.mark.browser]

Case = tuple[Callable[[Any], str], list[Any]]

DURATIONS = [0, 0.9, 12, 59.6, 60, 185, 599, 600, 3599, 7800, 35_999, 36_001]
DURATIONS += [86_399, 90_000, 172_800, 900_000]
SIZES = [0, 1, 2**20 - 1, 2**20, 512 * 2**20, 2**30, 8 * 2**30, 85_362_475_008]
ALLOCATIONS: list[dict[str, dict[str, float]]] = [
    {},
    {"gpu": {"0": 1}},
    {"gpu": {"0": 1, "1": 0.5}, "cpu": {"4": 1}, "ram": {"0": 3.26}},
    {"vram": {"0": 39.76, "1": 1}, "ram": {"0": 0.5}, "printer": {"left": 0.125}},
]
REQUESTS: list[dict[str, float | str]] = [
    {"gpu": 0.5, "ram": 8},
    {"vram": "auto", "cpu": 2},
    {"ram": 23.5389, "vram": 2048.5},
]


def ended(**facts: object) -> dict[str, object]:
    return {
        "signal": None,
        "exit_code": None,
        "reason": None,
        "state": "failed",
    } | facts


ENDINGS = [
    ended(exit_code=3),
    ended(signal=9),
    ended(signal=9, reason="time limit"),
    ended(signal=15, state="cancelled"),
    ended(signal=11),
    ended(signal=40),
    ended(),
]
FLAGGED = [
    {"state": "running", "flags": list[str]()},
    {"state": "running", "flags": ["suspended"]},
    {"state": "running", "flags": ["starting", "stopping"]},
]
LABELLED = [{"id": 7, "index": None}, {"id": 8, "index": 0}]

CASES: dict[str, Case] = {
    "brief": (brief, DURATIONS),
    "rough": (rough, DURATIONS),
    "size": (size, SIZES),
    "units": (units, ALLOCATIONS),
    "asked": (asked, REQUESTS),
    "ending": (ending, ENDINGS),
    "stateOf": (state, FLAGGED),
    "label": (label, LABELLED),
}


def test_words_are_those_of_the_command_line(page: Page) -> None:
    for name, (write, values) in CASES.items():
        shown = page.evaluate(
            """async ([name, values]) =>
                values.map((await import("/app/words.mjs"))[name])""",
            [name, values],
        )
        assert dict(zip(map(str, values), shown, strict=True)) == {
            str(value): write(value) for value in values
        }, name
