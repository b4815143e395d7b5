"""Short jobs while somebody follows a large output over TLS, and while nobody does.

One worker's job has written a gigabyte and runs on; `grass logs -f` fetches it through
the broker, over two encrypted connections, while short jobs run on the same worker.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import ONE_SLOT, FreshHome, environment_of
from benchmarks.scratch import scratch_folder
from benchmarks.sizes import Sizes
from benchmarks.small_cluster import small_cluster
from grass.broker.shell.output_flow import BYTES_PER_S

_ALONE, _FOLLOWED = "nobody follows", "a follower"
_WARM_UP = 200
_LEAST_FOLLOWED = 1 << 20
_WRITING_S = 300


def following(sizes: Sizes) -> Benchmark:
    """Return the same jobs with and without a follower."""
    jobs, size = sizes.output_jobs, sizes.output_bytes
    return Benchmark(
        "following",
        [lambda: _both(jobs, size)],
        [
            Claim(
                f"jobs/s while {size / 1e9:.2g} GB are followed, against nobody",
                lambda f: f[_FOLLOWED] / f[_ALONE],
                bar=0.8,
                goal=0.95,
                unit="x",
            )
        ],
        "jobs/s",
        [
            f"twice {jobs:,} jobs `true` each, in the order A B B A, over TLS",
            f"the follower gets {BYTES_PER_S / 1e6:.1f} MB/s while they run",
        ],
    )


def _both(jobs: int, size: int) -> Figures:
    with small_cluster(workers=1, slots=3) as fresh:
        fresh.run(_WARM_UP, ["true"])
        writer = _writer(fresh, size)
        took_s = {_ALONE: 0.0, _FOLLOWED: 0.0}
        for what in (_ALONE, _FOLLOWED, _FOLLOWED, _ALONE):
            with _follower(fresh, writer, what == _FOLLOWED):
                started = time.perf_counter()
                fresh.run(jobs, ["true"])
                took_s[what] += time.perf_counter() - started
        fresh.client.cancel([str(writer)], grace_s=0, signal=9)
        fresh.client.wait([str(writer)])
    return {what: 2 * jobs / taken for what, taken in took_s.items()}


def _writer(fresh: FreshHome, size: int) -> int:
    """Have a job write much and then sit on a slot of its own."""
    with scratch_folder() as folder, _pipe(folder / "written") as (path, end):
        line = f"yes 0123456789 | head -c {size}; echo; echo >{path}; exec sleep 100000"
        id: int = fresh.client.enqueue(
            ["sh", "-c", line], **ONE_SLOT, max_output=str(2 * size)
        )
        if not select.select([end], [], [], _WRITING_S)[0]:
            raise RuntimeError("the output was not written")
    return id


@contextmanager
def _pipe(path: Path) -> Iterator[tuple[Path, int]]:
    """Make a named pipe that a job tells something through, and hold it open."""
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield path, end
    finally:
        os.close(end)


@contextmanager
def _follower(fresh: FreshHome, id: int, wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    words = [sys.executable, "-m", "grass", "logs", "-f", str(id)]
    address = fresh.client.overview()["daemon"]["tcp"]["address"]
    follower = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        env={**environment_of(fresh), "GRASS_BROKER": address},
    )
    drain = subprocess.Popen(["cat"], stdin=follower.stdout, stdout=subprocess.DEVNULL)
    try:
        yield
        if psutil.Process(drain.pid).io_counters().write_chars < _LEAST_FOLLOWED:
            raise RuntimeError("nobody followed the output")
    finally:
        for one in (follower, drain):
            one.kill()
            one.wait()
