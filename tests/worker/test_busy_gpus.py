"""Which GPUs are too busy for one more job whose memory is learned."""

from grass.devices.readings import GpuProcess
from grass.worker.core.admission import Admission
from grass.worker.core.usage.busy_gpus import BusyGpus
from grass.worker.core.usage.samples import Sample
from tests.worker.gpu_values import reading

BAR = 8_000
PROCESS = GpuProcess(7, 0)


class Looks:
    """Looks at one GPU, a second apart."""

    def __init__(self, bar: int | None = BAR) -> None:
        self.gpus = BusyGpus(bar)
        self.now_s = 100.0

    def look(self, percent: int | None, after_s: float = 1.0) -> bool:
        self.now_s += after_s
        gpu = reading(PROCESS, utilization=percent)
        return self.gpus.sampled([gpu], self.now_s) == {"0"}

    def looks(self, percent: int, count: int) -> list[bool]:
        return [self.look(percent) for _ in range(count)]


def test_a_gpu_is_busy_once_its_mean_reaches_the_bar() -> None:
    looks = Looks()
    assert not any(looks.looks(0, 10))
    assert looks.looks(100, 10) == [False] * 7 + [True] * 3


def test_it_is_busy_until_it_is_a_tenth_below_the_bar() -> None:
    looks = Looks()
    looks.looks(80, 10)
    assert all(looks.looks(73, 20))
    assert looks.looks(71, 20)[-1] is False
    assert not any(looks.looks(79, 20))


def test_looks_count_for_the_time_between_them() -> None:
    looks = Looks()
    looks.looks(0, 10)
    # A job that is young is looked at ten times a second.
    assert not any(looks.look(100, 0.1) for _ in range(50))
    looks = Looks()
    looks.look(0)
    # A GPU without jobs is looked at every ten seconds.
    assert looks.look(100, 10.0)


def test_two_looks_at_one_moment_are_one() -> None:
    looks = Looks()
    looks.look(100)
    assert looks.look(0, 0.0)


def test_a_gpu_that_no_process_uses_is_not_busy() -> None:
    looks = Looks()
    assert looks.looks(100, 10)[-1]
    left = reading(utilization=100)
    assert looks.gpus.sampled([left], looks.now_s + 1) == frozenset()
    hidden = reading(utilization=100, pids_hidden=True)
    assert looks.gpus.sampled([hidden], looks.now_s + 2) == {"0"}


def test_a_gpu_that_does_not_tell_is_not_busy() -> None:
    assert not Looks().look(None)


def test_without_a_bar_no_gpu_is_busy() -> None:
    assert not any(Looks(None).looks(100, 10))


def test_the_broker_is_told_when_a_gpu_becomes_busy_and_no_sooner() -> None:
    admission = Admission(BusyGpus(BAR))
    told = []
    for now in range(40):
        gpu = reading(PROCESS, utilization=0 if now < 10 or now >= 20 else 100)
        news = admission.sampled(Sample(float(now), (gpu,), {}), {}, float(now))
        if news is not None:
            told.append((now, news.busy))
    assert told == [
        (0, frozenset()),
        (17, frozenset("0")),
        (22, frozenset()),
    ]
