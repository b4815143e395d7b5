"""Who held what: lanes, the longest bars, and hours."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.usage.held_sums import (
    DAY_US,
    HeldSum,
    HeldSums,
    SumKey,
    add,
    held_by,
)
from grass.queries.timeline import timeline
from grass.queries.timeline.timeline import (
    Collected,
    Held,
    Lane,
    Lanes,
    Window,
    collect,
    hours,
)
from grass.store.changes import Changes
from grass.store.interface import AttemptSpan
from grass.store.sqlite.sqlite_store import SqliteStore
from tests.support.building import WORKER, a_job, a_spec, an_attempt

HOUR = 3600 * 1_000_000
GPU_0, GPU_1 = Lane("box", "gpu", "0"), Lane("box", "gpu", "1")
BOX = {
    "gpu": {"0": WHOLE, "1": WHOLE},
    "vram": {"0": 80 * WHOLE, "1": 80 * WHOLE},
    "cpu": {"0": WHOLE, "1": WHOLE},
}
LANES = Lanes({"box": BOX, "desk": {"cpu": {"0": WHOLE, "1": WHOLE}}})
DAY = Window(0, 24 * HOUR)


def held(begin: float, end: float, job: int = 1, **fields: Any) -> AttemptSpan:
    """Give an attempt that held something from one hour to another."""
    standard: dict[str, Any] = {
        "owner": "uid:1",
        "state": JobState.SUCCEEDED,
        "worker": "box",
        "allocation": {"gpu": {"0": WHOLE}},
    }
    at = {"started_at": int(begin * HOUR), "finished_at": int(end * HOUR)}
    given = {**standard, **at, "job_finished_at": int(end * HOUR), **fields}
    return AttemptSpan(job, 1, **given)


def collected(*spans: AttemptSpan, window: Window = DAY, most: int = 100) -> Collected:
    found = Collected(window, LANES, most)
    for span in spans:
        found.add(span)
    return found


def of_lanes(found: Collected) -> dict[tuple[str, Lane], float]:
    return {key: hours(total) for key, total in found.totals.items() if hours(total)}


def test_each_gpu_is_a_lane_and_so_are_all_cores_where_there_is_none() -> None:
    assert LANES.known == {
        GPU_0: WHOLE,
        GPU_1: WHOLE,
        Lane("desk", "cpu", ""): 2 * WHOLE,
    }


@pytest.mark.parametrize(
    ("allocation", "amounts"),
    [
        ({"gpu": {"0": WHOLE, "1": WHOLE // 2}}, {"0": WHOLE, "1": WHOLE // 2}),
        ({"gpu": {"1": 2500}, "vram": {"1": 60 * WHOLE}}, {"1": 2500}),
        ({"vram": {"0": 20 * WHOLE}}, {"0": WHOLE // 4}),
        ({"cpu": {"0": WHOLE}}, {}),
    ],
)
def test_the_height_of_a_bar_is_the_share_of_its_gpu(
    allocation: Any, amounts: dict[str, int]
) -> None:
    found = collected(held(1, 2, allocation=allocation)).bars
    assert {one.lane.unit: one.amount for one in found} == amounts


def test_hours_are_those_of_whole_units_within_the_window() -> None:
    half = {"gpu": {"0": WHOLE // 2}, "cpu": {"0": WHOLE, "1": WHOLE}}
    found = collected(
        held(-2, 4, allocation=half),
        held(22, 30, owner="uid:2", state=JobState.RUNNING),
        held(5, 6, worker="desk", allocation={"cpu": {"0": WHOLE}}),
        held(-2, -1),
        held(24, 25),
    )
    assert of_lanes(found) == {
        ("uid:1", GPU_0): 2.0,
        ("uid:1", Lane("box", "cpu", "")): 8.0,
        ("uid:2", GPU_0): 2.0,
        ("uid:1", Lane("desk", "cpu", "")): 1.0,
    }
    assert [(one.span.owner, one.lane) for one in found.bars] == [
        ("uid:1", GPU_0),
        ("uid:1", Lane("desk", "cpu", "")),
        ("uid:2", GPU_0),
    ]


def test_of_many_bars_the_longest_are_told_and_hours_count_all() -> None:
    spans = [held(one / 10, one / 10 + one / 100, job=one) for one in range(1, 101)]
    found = collected(*spans, most=3)
    assert sorted(one.span.job for one in found.bars) == [98, 99, 100]
    assert found.left_out == 97
    assert sum(of_lanes(found).values()) == pytest.approx(50.5)


def test_only_one_worker_may_be_looked_at() -> None:
    spans = held(1, 2), held(1, 2, worker="desk", allocation={"cpu": {"0": WHOLE}})
    found = collected(*spans, window=Window(0, 24 * HOUR, "desk"))
    assert [one.lane.worker for one in found.bars] == ["desk"]


def test_a_gpu_of_a_forgotten_worker_is_shown() -> None:
    found = collected(held(1, 2, worker="gone", allocation={"vram": {"7": WHOLE}}))
    (bar,) = found.bars
    assert bar == Held(bar.span, Lane("gone", "gpu", "7"), WHOLE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "grass.db")
    store.commit(Changes(specs={1: a_spec()}))
    yield store
    store.close()


def ended(store: SqliteStore, job: int, end: int, attempts: int = 1) -> None:
    """Add a job that ended at that hour, after attempts of one hour each."""
    made = a_job(job, state=JobState.SUCCEEDED, name=f"fit-{job}")
    made.attempts, made.finished_at = attempts, end * HOUR
    tried = {}
    for number in range(1, attempts + 1):
        at = end - attempts + number
        tried[job, number] = an_attempt(
            job,
            number,
            state=AttemptState.EXITED,
            started_at=(at - 1) * HOUR,
            finished_at=at * HOUR,
        )
    store.commit(Changes(jobs={job: made}, attempts=tried))


def test_what_ended_is_read_page_by_page_with_names(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "PAGE", 2)
    for job in range(1, 8):
        # Several end at the same time.
        ended(store, job, 10 + job // 3, attempts=1 + job % 2)
    lanes = Lanes({WORKER: {"cpu": {"0": WHOLE}}})
    running = [held(9, 13, 8, worker=WORKER, allocation={"cpu": {"0": WHOLE}})]
    found = Collected(Window(8 * HOUR, 12 * HOUR), lanes, 100)
    collect(store, found, running, 8 * HOUR, 100)
    assert len(found.bars) == 7 + 4 + 1
    states = {(one.span.job, one.span.number): one.span.state for one in found.bars}
    assert states[1, 1] is JobState.FAILED
    assert states[1, 2] is JobState.SUCCEEDED
    assert found.names[7] == "fit-7"
    assert found.complete_from is None


def test_of_too_many_attempts_the_latest_are_read(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "PAGE", 2)
    for job in range(1, 6):
        ended(store, job, 10 + job)
    found = Collected(DAY, Lanes({WORKER: {"cpu": {"0": WHOLE}}}), 100)
    collect(store, found, [], most=2, since=0)
    assert found.complete_from == 14 * HOUR
    assert [one.span.job for one in found.bars] == [4, 5]
    read = store.attempts_since(0, 2)
    assert [one.job for one in read] == [5, 4]
    assert [one.job for one in store.attempts_since(0, 2, read[-1])] == [3, 2]
    assert store.attempts_since(20 * HOUR, 2) == []


@given(
    times=st.lists(
        st.tuples(st.integers(0, 30 * 60), st.integers(0, 30 * 60)), max_size=12
    ),
    now=st.integers(31, 90),
)
def test_hours_of_forgotten_attempts_are_those_that_were_counted(
    times: list[tuple[int, int]], now: int
) -> None:
    window = Window(-DAY_US, 100 * DAY_US)
    allocations = [
        {"gpu": {"0": WHOLE, "1": 2500}, "vram": {"1": 60 * WHOLE}},
        {"vram": {"0": 20 * WHOLE}, "cpu": {"0": WHOLE}},
        {"cpu": {"0": WHOLE, "1": 500}, "ram": {"ram": 7}},
    ]
    seen, left = Collected(window, LANES, 0), Collected(window, LANES, 0)
    sums: HeldSums = {}
    for number, (begin, minutes) in enumerate(times):
        job = a_job(number, owner=f"uid:{number % 2}")
        attempt = an_attempt(
            number,
            worker="box",
            allocation=allocations[number % 3],
            started_at=begin * HOUR // 60,
            finished_at=(begin + minutes) * HOUR // 60,
        )
        add(sums, held_by(job, [attempt], now * DAY_US))
        span = timeline._span(attempt, job.owner, JobState.SUCCEEDED, 0)
        seen.add(replace(span, finished_at=attempt.finished_at))
    for key, one in sums.items():
        left.add_sum(key, one)
    assert left.totals == seen.totals


def test_a_part_of_a_sum_counts_for_a_part_of_its_time() -> None:
    key = SumKey(8 * HOUR, 4 * HOUR, "uid:1", "p", "box", '{"gpu":{"0":5000}}')
    found = Collected(Window(6 * HOUR, 24 * HOUR), LANES, 0)
    found.add_sum(key, HeldSum(4 * HOUR, 8 * HOUR, 4 * HOUR, 2))
    assert of_lanes(found) == {("uid:1", GPU_0): 1.0}
    found.add_sum(key, HeldSum(1 * HOUR, 5 * HOUR, 4 * HOUR, 2))
    assert of_lanes(found) == {("uid:1", GPU_0): 1.0}
