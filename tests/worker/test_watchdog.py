"""Enforced attempts that use more of a shared GPU than they reserved."""

from typing import Any

import pytest

from grass.keeper.protocol import Notes
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.worker.core.attempt_table import AttemptTable, WorkerAttempt
from grass.worker.core.framework_limits import framework_limits
from grass.worker.core.usage.samples import AttemptUse, Sample
from grass.worker.core.watchdog import PATIENCE_S, Watchdog
from tests.worker.gpu_values import memory
from tests.worker.lab import FIRST, SECOND


def table(enforce: str, *others: str) -> AttemptTable:
    made = AttemptTable()
    for name in (FIRST, *others):
        notes = Notes(memory(8), placed_at=3, enforce=enforce)
        made.attempts[name] = WorkerAttempt(notes)
    return made


def look(**used_gib: float) -> Sample:
    names = {"first": FIRST, "second": SECOND}
    uses = {
        names[who]: AttemptUse(frozenset(), 0, 0.0, {"0": int(size * GIB)})
        for who, size in used_gib.items()
    }
    return Sample(0.0, (), uses)


def test_an_attempt_is_warned_once_and_then_stopped() -> None:
    dog = Watchdog(table("stop", SECOND))
    over = look(first=12, second=8)

    first = dog.sampled(over, 100.0)
    (warning,) = first.warnings
    assert (warning.attempt, warning.unit, warning.placed_at) == (FIRST, "0", 3)
    assert (warning.used, warning.reserved) == (12 * GIB, 8 * GIB)
    assert not first.stops

    assert dog.sampled(over, 100.0 + PATIENCE_S - 1) == ([], [])
    (stop,) = dog.sampled(over, 100.0 + PATIENCE_S).stops
    assert stop.id == FIRST
    assert stop.reason.endswith("used 12 GiB of 8 GiB on gpu 0")
    assert dog.sampled(over, 200.0) == ([], [])


@pytest.mark.parametrize(
    ("enforce", "others", "first_gib"),
    [("warn", (SECOND,), 8.2), ("stop", (), 12), ("", (SECOND,), 12)],
)
def test_who_is_left_alone(enforce: str, others: Any, first_gib: float) -> None:
    dog = Watchdog(table(enforce, *others))
    for at in (0.0, 100.0):
        assert dog.sampled(look(first=first_gib), at) == ([], [])


def test_one_that_is_only_to_be_warned_is_never_stopped() -> None:
    dog = Watchdog(table("warn", SECOND))
    assert len(dog.sampled(look(first=12), 0.0).warnings) == 1
    assert dog.sampled(look(first=12), 1000.0) == ([], [])


def test_time_counts_anew_after_memory_was_freed() -> None:
    dog = Watchdog(table("stop", SECOND))
    dog.sampled(look(first=12), 0.0)
    dog.sampled(look(first=4), PATIENCE_S - 1)
    assert dog.sampled(look(first=12), PATIENCE_S + 1) == ([], [])
    assert dog.sampled(look(first=12), 2 * PATIENCE_S + 1).stops


TOTAL = {"0": 80 * WHOLE, "1": 80 * WHOLE}
QUARTER = {"vram": {"0": 20 * WHOLE}}


def test_libraries_are_told_their_share_without_their_context() -> None:
    assert framework_limits(QUARTER, TOTAL, {}) == {
        "PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.2437",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.2437",
    }


@pytest.mark.parametrize(
    ("allocation", "environment", "told"),
    [
        (QUARTER, {"PYTORCH_CUDA_ALLOC_CONF": ""}, {"XLA_PYTHON_CLIENT_MEM_FRACTION"}),
        (QUARTER, {"PYTORCH_ALLOC_CONF": "a:1"}, {"XLA_PYTHON_CLIENT_MEM_FRACTION"}),
        (QUARTER, {"XLA_CLIENT_MEM_FRACTION": ".5"}, {"PYTORCH_ALLOC_CONF"}),
        ({"vram": {"0": 80 * WHOLE}}, {}, set()),
        ({"cpu": {"0": WHOLE}}, {}, set()),
        ({"vram": {"7": WHOLE}}, {}, set()),
    ],
)
def test_what_the_user_set_is_left_alone(
    allocation: Any, environment: dict[str, str], told: set[str]
) -> None:
    assert framework_limits(allocation, TOTAL, environment).keys() == told
