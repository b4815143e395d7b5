"""What the next attempt of a type is given, by what earlier ones used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.broker.core.profiles.prediction import MIB, growth, predicted
from grass.model.amounts import GIB
from grass.model.usage.profiles import MeasuredRun, SampleEnd


def used(
    *peaks: float, end: SampleEnd = "succeeded", ran_s: float = 60
) -> list[MeasuredRun]:
    return [
        MeasuredRun(job, 0, int(peak * GIB), ran_s, end=end)
        for job, peak in enumerate(peaks, 1)
    ]


def memory(samples: list[MeasuredRun]) -> float:
    found = predicted(samples)
    assert found is not None
    return found.memory / GIB


@pytest.mark.parametrize(
    ("peaks", "given"),
    [
        ([2], 2.25),
        ([10], 10.5),
        ([2, 2, 2], 2.25),
        ([2, 3, 4], 4.25),
        ([2] * 49 + [20], 20),
        ([0], 0.25),
    ],
)
def test_a_margin_is_added_to_what_was_used(peaks: list[float], given: float) -> None:
    assert memory(used(*peaks)) == pytest.approx(given, rel=1e-6)


def test_one_of_very_many_does_not_count() -> None:
    assert memory(used(*[2] * 199, 20)) == 2.25


def test_nothing_is_known_from_attempts_that_came_to_nothing() -> None:
    assert predicted([]) is None
    assert predicted(used(3, end="failed")) is None
    assert predicted(used(3, end="out-of-memory")) is None


def test_an_attempt_that_failed_needed_at_least_its_peak() -> None:
    assert memory([*used(2), *used(6, end="failed")]) >= 6
    assert memory([*used(2), *used(1, end="failed")]) == 2.25


def test_after_one_that_ran_out_of_memory_more_is_given() -> None:
    found = predicted([*used(2), *used(8, end="out-of-memory")])
    assert found is not None
    assert found.memory == 12 * GIB
    assert found.why == "job 1 ran out of memory with 8G: half as much more"


def test_one_that_had_enough_since_then_tells_more() -> None:
    assert memory([*used(8, end="out-of-memory"), *used(9)]) == pytest.approx(9.45)


def test_a_run_that_goes_on_counts_and_is_named_so() -> None:
    found = predicted(used(2, end="running"))
    assert found is not None
    assert found.why == "at most 2G in 1 run so far, and 256M to spare"


def leak(ran_s: float, start: float = 1.0, per_s: float = 0.01) -> MeasuredRun:
    """Give an attempt whose memory grows evenly."""
    marks, at = [], 1
    while at <= ran_s:
        marks.append(int((start + per_s * at) * GIB))
        at *= 2
    peak = int((start + per_s * ran_s) * GIB)
    return MeasuredRun(7, 0, peak, ran_s, marks=tuple(marks))


@pytest.mark.parametrize("ran_s", [60, 100, 128, 500, 4000])
def test_growth_is_seen_whatever_the_time(ran_s: float) -> None:
    assert growth(leak(ran_s)) == pytest.approx(0.01 * GIB, rel=0.01)


def test_one_step_is_no_growth() -> None:
    marks = (GIB,) * 6 + (3 * GIB,)
    assert growth(MeasuredRun(1, 0, 3 * GIB, 100, marks=marks)) is None
    assert growth(MeasuredRun(1, 0, 3 * GIB, 100, marks=(3 * GIB,) * 7)) is None


def test_small_changes_are_no_growth() -> None:
    marks = tuple(10 * GIB + step * 10 * MIB for step in range(7))
    assert growth(MeasuredRun(1, 0, marks[-1] + 10 * MIB, 100, marks=marks)) is None


def test_a_type_that_grows_is_given_what_a_longer_run_would_use() -> None:
    found = predicted([*used(1.5), leak(100)])
    assert found is not None
    assert found.grows
    assert found.memory / GIB == pytest.approx(2.5 * 1.1, rel=0.01)
    assert found.why == (
        "its memory grows by 36G an hour: 2G after 100s, reserved for 2m"
    )


def test_the_amount_is_never_less_than_the_memory() -> None:
    found = predicted([MeasuredRun(1, 0, 3 * GIB + 1)])
    assert found is not None
    assert found.amount * GIB >= found.memory * 10_000


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12))
def test_the_peak_is_taken_that_would_have_wasted_least(gibs: list[int]) -> None:
    def cost(given: int) -> int:
        return sum(given - one if one <= given else given + one for one in gibs)

    least = min(cost(one) for one in gibs)
    base = max(one for one in gibs if cost(one) == least)
    margin = max(base / 20, 0.25, max(gibs) - base)
    assert memory(used(*gibs)) == pytest.approx(base + margin, rel=1e-6)
