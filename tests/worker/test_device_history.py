"""The history of GPUs, also of those that no job uses."""

from grass.model.amounts import GIB
from grass.worker.core.usage.device_history import DeviceHistory
from tests.worker.gpu_values import reading


def test_looks_become_points_of_ten_seconds_that_are_written_now_and_then() -> None:
    history = DeviceHistory("/out")
    for second in range(71):
        used = 5 * GIB if second == 15 else GIB
        history.note((reading(used=used, utilization=40),), 1000.0 + second)
        if second < 60:
            assert history.take() == {}

    (points,) = history.take().values()

    assert [one.at_s for one in points][:2] == [1010.0, 1020.0]
    assert points[1].gpus == {"0": (5 * GIB, 40.0)}
    assert history.files() == {"0": "/out/.machine/gpu-0.usage"}


def test_a_gpu_that_fails_has_no_points() -> None:
    history = DeviceHistory("/out")
    for second in range(0, 100, 10):
        history.note((reading(fault="lost"),), 1000.0 + second)

    assert history.take(every=True) == {}
