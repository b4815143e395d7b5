"""From the kill of a leader to the next start of a job, with many jobs queued.

Two brokers share a PostgreSQL server that syncs, and a machine of its own works for
whichever leads. Jobs last longer than those that are sent ahead to a worker, so that
the next one to start is one that the new leader has placed. It has read all the others
before that.
"""

import re
import time
from pathlib import Path

from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, join, machines, new_line
from tests.support.patience import until
from tests.support.postgres import missing_program

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.postgres import syncing_server
from benchmarks.scratch import scratch_folder
from benchmarks.sizes import Sizes

_TOOK, _READING = "killed to next start", "of that, reading"
_JOB_S = 0.2
_LOADED = re.compile(r"lead\.taken epoch=2 loaded_s=([0-9.]+)")


def failover(sizes: Sizes) -> Benchmark:
    """Return the one contender, or none where there is no server."""
    missing = missing_program()
    if missing is not None:
        return Benchmark("failover", [], [], "s", [f"left out: no {missing}"])
    claim = Claim(
        f"leader killed with {sizes.long_line:,} queued, to the next start of a job",
        lambda figures: figures[_TOOK],
        bar=10.0,
        goal=5.0,
        unit="s",
        at_most=True,
    )
    return Benchmark("failover", [lambda: _measured(sizes)], [claim], "s")


def _measured(sizes: Sizes) -> Figures:
    with (
        syncing_server() as url,
        scratch_folder() as folder,
        machines(folder) as make,
    ):
        first, second = make("one"), make("two")
        first.ok("start", *LOOPBACK, "--no-worker", "--name", "one", "--store", url)
        line = new_line(first, "--role", "broker")
        second.ok("join", "--standby", *LOOPBACK, "--name", "two", line)
        rack = join(first, make("rack"), "rack")
        until(lambda: _known(rack), "two brokers are known", lambda known: known == 2)
        starts = folder / "starts"
        _enqueue(first, sizes.long_line, starts)
        until(lambda: len(_times(starts)), "jobs run", lambda count: count > 5)
        struck = time.time()
        first.kill_daemon()
        took_s = until(lambda: _next(starts, struck), "a job starts again") - struck
        read = _LOADED.search(second.log())
        assert read is not None
        return {_TOOK: took_s, _READING: float(read[1])}


def _enqueue(home: GrassHome, jobs: int, starts: Path) -> None:
    """Enqueue jobs that all differ, as a thousand scripts do."""
    line = f"date +%s.%N >> {starts}; sleep {_JOB_S}"
    starts.touch()
    commands = [["sh", "-c", line, str(n)] for n in range(jobs)]
    home.client.enqueue_many(commands, worker="rack")


def _known(home: GrassHome) -> int:
    """Count the brokers that a machine knows."""
    return home.ok("brokers").count("127.0.0.1:")


def _times(starts: Path) -> list[float]:
    return [float(line) for line in starts.read_text().splitlines()]


def _next(starts: Path, struck: float) -> float:
    """Return when the next job started; one may just have been on its way."""
    later = [at for at in _times(starts) if at > struck + 2 * _JOB_S]
    return min(later, default=0.0)
