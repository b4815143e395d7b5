"""Where jobs that wait are drawn among what is expected."""

from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import JobState
from grass.queries.timeline.timeline import Lane, Lanes
from grass.queries.timeline.timeline_outlook import Expected, _placed

GPUS = {"gpu": dict.fromkeys(("0", "1"), WHOLE)}


def expected(unit: str, amount: int, end: int) -> Expected:
    lane = Lane("desk", "gpu", unit)
    return Expected(1, "fit", "uid:0", JobState.RUNNING, lane, amount, 0, end)


def units(request: int, start: int, *held: Expected) -> list[str]:
    lanes = Lanes({"desk": GPUS})
    placed = _placed(lanes, list(lanes.known), {"gpu": request}, held, start)
    return [lane.unit for lane, _ in placed]


def test_a_job_is_drawn_where_there_is_room_at_its_start() -> None:
    long_half = expected("0", WHOLE // 2, 90)
    short_whole = expected("1", WHOLE, 50)
    assert units(WHOLE // 2, 10, long_half, short_whole) == ["0"]
    assert units(WHOLE, 60, long_half, short_whole) == ["1"]


def test_a_job_is_drawn_only_on_gpus_that_it_may_have() -> None:
    lanes = Lanes({"desk": GPUS})
    own = [lane for lane in lanes.known if lane.unit == "1"]
    held = [expected("1", WHOLE, 50)]
    placed = _placed(lanes, own, {"gpu": WHOLE}, held, 10)
    assert [lane.unit for lane, _ in placed] == ["1"]


def test_without_room_it_is_drawn_where_there_is_some_first() -> None:
    assert units(WHOLE, 10, expected("0", WHOLE, 90), expected("1", WHOLE, 50)) == ["1"]
