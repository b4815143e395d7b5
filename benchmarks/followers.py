"""Twenty open tabs: what they cost the daemon, and the jobs that run meanwhile.

Short jobs run before a line of others that wait. The same followers follow the daemon
that runs them, or an idle one beside it, so that what the followers themselves take of
the machine is the same in both.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import FreshHome, fresh_home
from benchmarks.sizes import Sizes

_FOLLOWERS = 20
_OWN, _IDLE = "followers of this daemon", "followers of an idle one"
_CPU, _RESIDENT = "more of a core, %", "more resident, MB"
_FRAMES = "overviews/s of a tab"
_WARM_UP = 200
_MB = 1_000_000
_LEAST_BYTES = 100_000


def followers(sizes: Sizes) -> Benchmark:
    """Return the same jobs with followers of either daemon."""
    jobs = sizes.followed_jobs
    return Benchmark(
        "followers",
        [lambda: _both(jobs, sizes.short_queue)],
        [
            Claim(
                f"daemon's time for {_FOLLOWERS} followers",
                lambda f: f[_CPU],
                bar=10,
                goal=5,
                unit="% of a core",
                at_most=True,
            ),
            Claim(
                f"resident memory for {_FOLLOWERS} followers",
                lambda f: f[_RESIDENT],
                bar=20,
                goal=10,
                unit="MB",
                at_most=True,
            ),
            Claim(
                "overviews that one follower is sent",
                lambda f: f[_FRAMES],
                bar=4,
                goal=4,
                unit="/s",
                at_most=True,
            ),
            Claim(
                "jobs/s while followed, against followers of an idle daemon",
                lambda f: f[_OWN] / f[_IDLE],
                bar=0.95,
                goal=0.98,
                unit="x",
            ),
        ],
        "jobs/s, if not named otherwise",
        [
            f"twice {jobs:,} jobs `true` each, in the order A B B A",
            f"{sizes.short_queue:,} others are queued",
        ],
    )


def _both(jobs: int, queued: int) -> Figures:
    with fresh_home(slots=2) as fresh, fresh_home(slots=2) as idle:
        fresh.client.create_queue("later", {"capacity": "{later:1}"})
        fresh.client.pause("later")
        fresh.client.enqueue_many([["true"]] * queued, queue="later")
        fresh.run(_WARM_UP, ["true"])
        took_s, spent_s = dict.fromkeys((_OWN, _IDLE), 0.0), {_OWN: 0.0, _IDLE: 0.0}
        resident, frames = list[float](), list[float]()
        for what in (_IDLE, _OWN, _OWN, _IDLE):
            with _following(fresh if what == _OWN else idle, what == _OWN, frames):
                started, spent = time.perf_counter(), fresh.daemon_s()
                fresh.run(jobs, ["true"])
                took_s[what] += time.perf_counter() - started
                spent_s[what] += fresh.daemon_s() - spent
                resident.append(_resident(fresh))
    figures = {what: 2 * jobs / taken for what, taken in took_s.items()}
    more_s = spent_s[_OWN] - spent_s[_IDLE]
    figures[_CPU] = 100 * more_s / took_s[_OWN]
    # The jobs alone make it grow: so against the first round, in which none followed.
    figures[_RESIDENT] = max(resident[1:3]) - resident[0]
    figures[_FRAMES] = max(frames)
    return figures


def _resident(fresh: FreshHome) -> float:
    return float(fresh.processes()[0].memory_info().rss) / _MB


@contextmanager
def _following(fresh: FreshHome, busy: bool, frames: list[float]) -> Iterator[None]:
    words = [sys.executable, "-m", "benchmarks.follower_process"]
    words += [fresh.client.open_web(port=0)["url"], str(_FOLLOWERS)]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("nobody followed")
        yield
    finally:
        process.stdin.close()
        told = process.stdout.read().split()
        process.wait()
    got, calls = map(int, told[:2])
    frames.append(float(told[2]))
    if busy and (got < _LEAST_BYTES * _FOLLOWERS or calls < _FOLLOWERS):
        raise RuntimeError(f"all tabs got {got} bytes and made {calls} calls")
