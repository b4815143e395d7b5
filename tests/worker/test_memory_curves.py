"""Following the GPU memory of attempts: when it counts as flat, and what is told."""

from grass.devices.readings import GpuProcess
from grass.link.messages import KnownUnits, ProfileNoted
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.worker.core.usage.memory_curves import MIB, MemoryCurve
from grass.worker.core.usage.samples import ProcessUse
from tests.worker.gpu_values import reading
from tests.worker.lab import FIRST, Lab, ready

GPU = {"vram": {"0": 10_000}}


def followed(*points: tuple[float, int]) -> MemoryCurve:
    curve = MemoryCurve(points[0][0])
    for age_s, memory in points:
        curve.add(age_s, memory)
    return curve


def test_memory_is_flat_after_three_times_the_time_to_its_peak() -> None:
    curve = followed((0.3, 0), (1.0, GIB), (5.0, 4 * GIB))
    assert not curve.is_flat(19.9)
    assert curve.is_flat(20.0)


def test_it_is_flat_after_ten_seconds_at_the_earliest() -> None:
    curve = followed((0.3, GIB))
    assert not curve.is_flat(10.2)
    assert curve.is_flat(10.4)


def test_nothing_used_is_not_flat() -> None:
    assert not followed((0.3, 0), (100, 0)).is_flat(100)


def test_a_little_more_changes_nothing_but_the_peak() -> None:
    curve = followed((0.3, 10 * GIB), (9.0, 10 * GIB + 50 * MIB))
    assert curve.is_flat(11.0)
    assert curve.peak == 10 * GIB + 50 * MIB


def test_little_by_little_is_growth_all_the_same() -> None:
    curve = followed(*((1.0 * at, GIB + at * 10 * MIB) for at in range(1, 60)))
    assert not curve.is_flat(60)


def test_marks_are_the_most_until_their_time() -> None:
    curve = followed((0.5, GIB), (1.5, 3 * GIB), (3.9, 2 * GIB), (8.5, 5 * GIB))
    assert curve.marks == [GIB, 3 * GIB, 3 * GIB, 3 * GIB]


def test_one_that_was_not_seen_from_the_beginning_needs_a_minute() -> None:
    curve = followed((5000.0, GIB))
    assert not curve.is_flat(5059.0)
    assert curve.is_flat(5060.0)
    assert curve.marks == []


def look(lab: Lab, at_s: float, memory: int) -> list[object]:
    """Have the worker look at a GPU on which an attempt uses so much."""
    gpus = (reading(GpuProcess(7, memory), used=memory),)
    use = ProcessUse(frozenset({7}), 1, 0.0)
    lab.core.now_s = at_s
    lab.core.sampled(lab.core.usage.sampled(at_s, gpus, {FIRST: use}))
    return list(lab.core.take().to_broker)


def started(**more: bool) -> Lab:
    lab = ready()
    lab.core.from_broker(KnownUnits({"vram": {"0": 80 * WHOLE}}))
    lab.start(FIRST, GPU, placed_at=3, **more)
    lab.keeper("started", id=FIRST, pid=7, ticks=9, at=5, since=100.0)
    return lab


def test_the_broker_is_told_once_and_again_if_the_memory_grows() -> None:
    lab = started(learns=True)
    assert look(lab, 101.0, 2 * GIB) == []
    assert look(lab, 112.0, 2 * GIB) == [ProfileNoted(FIRST, 2 * GIB, 12.0, 1.0, 3)]
    assert look(lab, 113.0, 2 * GIB) == []
    assert look(lab, 114.0, 3 * GIB) == [ProfileNoted(FIRST, 3 * GIB, 14.0, 14.0, 3)]


def test_nobody_waits_for_one_that_hangs() -> None:
    lab = started(learns=True)
    assert look(lab, 101.0, 0) == []
    (late,) = look(lab, 700.0, 0)
    assert late == ProfileNoted(FIRST, 0, 600.0, 0.0, 3, late=True)
    assert look(lab, 701.0, 0) == []
    assert look(lab, 702.0, GIB) == []


def test_one_that_becomes_flat_late_is_told_all_the_same() -> None:
    curve = followed((0.3, GIB), (400.0, 2 * GIB))
    assert curve.is_news(600.0)
    assert not curve.is_news(1599.0)
    assert curve.is_news(1600.0)
    assert curve.told == 2 * GIB


def test_the_curve_goes_with_the_exit() -> None:
    lab = started(learns=True)
    look(lab, 101.0, 2 * GIB)
    look(lab, 104.0, 3 * GIB)
    (exited,) = lab.keeper("exited", id=FIRST, code=0).to_broker
    assert (exited.to_peak_s, exited.marks) == (4.0, (0, 2 * GIB, 2 * GIB))


def test_attempts_that_nobody_learns_from_are_not_followed() -> None:
    lab = started()
    look(lab, 101.0, 2 * GIB)
    assert look(lab, 112.0, 2 * GIB) == []
    (exited,) = lab.keeper("exited", id=FIRST, code=0).to_broker
    assert exited.marks == ()
