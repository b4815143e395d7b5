"""The gap: from the last instruction of a job to the first of the one behind it.

One slot, and jobs that note when they begin and end. What the bare loop needs between
two processes (an exit, a spawn, loading a program) is nobody's fault and is taken off:
its median, from the median and from the 99th percentile alike.
"""

import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from benchmarks.bare_loop import BareLoop
from benchmarks.figures import Benchmark, Claim, Figures, percentile
from benchmarks.fresh_home import fresh_home
from benchmarks.scratch import HERE, scratch_folder
from benchmarks.sizes import Sizes

_GRASS, _GRASS_P99 = "grass, median", "grass, p99"
_BARE, _BARE_P99 = "bare loop, median", "bare loop, p99"
_IN_PYTHON = """
import sys, time
first = time.monotonic_ns()
with open(sys.argv[1], "a") as file:
    time.sleep(0.005)
    file.write(f"{first} {time.monotonic_ns()}\\n")
"""


def gap(sizes: Sizes) -> Benchmark:
    """Return both contenders."""
    jobs = sizes.gap_jobs
    return Benchmark(
        "gap",
        [lambda: _grass(jobs), lambda: _bare(jobs)],
        [
            Claim(
                "gap between jobs, median, less the bare loop's",
                lambda f: f[_GRASS] - f[_BARE],
                bar=5.0,
                goal=1.0,
                unit="ms",
                at_most=True,
            ),
            Claim(
                "gap between jobs, p99, less the bare loop's median",
                lambda f: f[_GRASS_P99] - f[_BARE],
                bar=20.0,
                goal=5.0,
                unit="ms",
                at_most=True,
            ),
        ],
        "ms",
        [f"{jobs:,} jobs of 5 ms, one at a time; {_language()} job program"],
    )


def _grass(jobs: int) -> Figures:
    with fresh_home(slots=1) as fresh:
        gaps = _gaps(fresh.folder, jobs, lambda command: fresh.run(jobs, command))
    return {_GRASS: statistics.median(gaps), _GRASS_P99: percentile(gaps, 99)}


def _bare(jobs: int) -> Figures:
    with scratch_folder() as folder:
        gaps = _gaps(
            folder, jobs, lambda command: BareLoop(folder, command, slots=1).run(jobs)
        )
    return {_BARE: statistics.median(gaps), _BARE_P99: percentile(gaps, 99)}


def _gaps(folder: Path, jobs: int, run: Callable[[list[str]], None]) -> list[float]:
    """Run the jobs and return the gaps between them in milliseconds."""
    stamps = folder / "stamps"
    stamps.touch()
    run([*_stamping_program(folder), str(stamps)])
    times = sorted(
        (int(first), int(last))
        for first, last in map(str.split, stamps.read_text().splitlines())
    )
    if len(times) != jobs:
        raise RuntimeError(f"{len(times)} stamps of {jobs} jobs")
    gaps = [(later[0] - earlier[1]) / 1e6 for earlier, later in pairwise(times)]
    if min(gaps) < 0:
        raise RuntimeError("two jobs ran at once on one slot")
    return gaps


def _stamping_program(folder: Path) -> list[str]:
    compiler = shutil.which("cc")
    if compiler is None:
        return [sys.executable, "-I", "-S", "-c", _IN_PYTHON]
    program = folder / "stamp"
    subprocess.run([compiler, "-O2", "-o", program, HERE / "stamp.c"], check=True)
    return [str(program)]


def _language() -> str:
    return "C" if shutil.which("cc") else "Python (no C compiler here)"
