"""What measuring costs: processor time of a daemon and its reader of GPUs.

The GPUs are those of the stand-in library of the tests, whose own work counts too. Each
job has one process, which holds memory of its GPU. Young jobs are looked at more often,
so it begins when none is young any more.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from tests.support.gpus import FakeGpus

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import FreshHome, fresh_home
from benchmarks.scratch import scratch_folder
from benchmarks.sizes import Sizes

_DAEMON, _READER = "daemon", "its reader of GPUs"
_GPUS = 8
_YOUNG_S = 12.0
_ENV = "LD_LIBRARY_PATH", "FAKE_NVML_FILE"


def sampling(sizes: Sizes) -> Benchmark:
    """Return the one contender."""
    jobs, lasting_s = sizes.measured_jobs, sizes.measured_s
    return Benchmark(
        "sampling",
        [lambda: _used(jobs, lasting_s)],
        [
            Claim(
                f"part of a core that measuring takes, {_GPUS} GPUs and {jobs} jobs",
                lambda f: f[_DAEMON] + f[_READER],
                bar=1.0,
                goal=0.5,
                unit="%",
                at_most=True,
            )
        ],
        "% of a core",
        [f"over {lasting_s:.0f} s, nothing else to do"],
    )


def _used(jobs: int, lasting_s: float) -> Figures:
    with (
        scratch_folder() as folder,
        _gpus(FakeGpus(folder / "gpus")) as gpus,
        fresh_home(slots=1) as fresh,
    ):
        _hold(fresh, gpus, jobs)
        daemon = fresh.processes()[0]
        (reader,) = daemon.children()
        time.sleep(_YOUNG_S)
        before = _spent_s(daemon), _spent_s(reader)
        time.sleep(lasting_s)
        after = _spent_s(daemon), _spent_s(reader)
        fresh.client.cancel(["all"], grace_s=0, signal=9)
        fresh.client.wait_all()
    parts = [100 * (b - a) / lasting_s for a, b in zip(before, after, strict=True)]
    return dict(zip((_DAEMON, _READER), parts, strict=True))


@contextmanager
def _gpus(gpus: FakeGpus) -> Iterator[FakeGpus]:
    """Have daemons that are started meanwhile find these GPUs."""
    for number in range(_GPUS):
        gpus.device(number)
    known = {name: os.environ.get(name) for name in _ENV}
    os.environ.update(gpus.environment)
    try:
        yield gpus
    finally:
        for name, value in known.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def _hold(fresh: FreshHome, gpus: FakeGpus, jobs: int) -> None:
    """Run jobs that hold memory of GPUs."""
    commands = [["sleep", "1000"]] * jobs
    ids = fresh.client.enqueue_many(commands, require="{vram:1}")
    for job in range(ids["first"], ids["last"] + 1):
        while (document := fresh.client.job(job))["state"] != "running":
            time.sleep(0.01)
        attempt = document["attempts"][-1]
        (unit,) = attempt["allocation"]["vram"]
        while attempt["pid"] is None:
            attempt = fresh.client.job(job)["attempts"][-1]
        gpus.process(unit, attempt["pid"], "600M")


def _spent_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
