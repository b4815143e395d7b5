"""What a job costs the daemon with a thousand queues, and with one.

The daemon's own processor time is counted, so that other load on the machine matters
little. All queues see the same slots and all have jobs that wait: first in one queue,
then as many jobs spread over all, in the order A B B A. While all that waits is alike,
very short jobs are handed ahead, several for one commit, which has nothing to do with
the number of queues: so every other job asks for a little memory, too. What one queue
costs where jobs are handed ahead is given beside it.
"""

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import QUEUE, FreshHome, fresh_home
from benchmarks.sizes import Sizes

_SLOTS = 2
_ONE, _ALIKE = "1 queue", "1 queue, jobs handed ahead"
_REQUESTS = ("{slot:1}", "{slot:1, ram:0.001}")


def queues(sizes: Sizes) -> Benchmark:
    """Return the one and the many queues."""
    many, jobs = f"{sizes.queues:,} queues", sizes.queue_jobs
    restart = f"restart with {sizes.queues:,} queues, ms"
    return Benchmark(
        "queues",
        [lambda: _both(sizes.queues, jobs, many, restart)],
        [
            Claim(
                f"daemon's time per job, {many} against 1",
                lambda f: f[many] / f[_ONE],
                bar=1.5,
                goal=1.2,
                unit="x",
                at_most=True,
            )
        ],
        "us of the daemon per job",
        [
            f"twice {jobs:,} jobs `true` each, two at a time, in the order A B B A",
            "enqueue, start and end of each job are counted",
        ],
    )


def _both(count: int, jobs: int, many: str, restart: str) -> Figures:
    with fresh_home(_SLOTS) as one, fresh_home(_SLOTS) as several:
        names = [f"q{number}" for number in range(count)]
        for name in names:
            several.client.create_queue(name, {"capacity": f"{{slot:{_SLOTS}}}"})
        homes = {id(one): [QUEUE], id(several): names}
        for fresh in (one, several):
            fresh.client.pause()
            _spent_s(fresh, homes[id(fresh)], jobs // 4)
        spent_s = {id(one): 0.0, id(several): 0.0}
        for fresh in (one, several, several, one):
            spent_s[id(fresh)] += _spent_s(fresh, homes[id(fresh)], jobs)
        alike_s = _spent_s(one, [QUEUE], jobs, _REQUESTS[:1])
        again_s = several.restart()
        per_job = [spent_s[id(fresh)] / (2 * jobs) * 1e6 for fresh in (one, several)]
    figures = {_ONE: per_job[0], many: per_job[1], restart: again_s * 1e3}
    return figures | {_ALIKE: alike_s / jobs * 1e6}


def _spent_s(
    fresh: FreshHome, names: list[str], jobs: int, asked: tuple[str, ...] = _REQUESTS
) -> float:
    """Run jobs through a paused daemon; it is paused again afterwards."""
    count = len(names)
    documents: list[dict[str, object]] = [
        {"queue": names[at % count], "require": asked[at // count % len(asked)]}
        for at in range(jobs)
    ]
    before = fresh.daemon_s()
    ids = fresh.client.enqueue_jobs(documents, {"command": ["true"]})
    fresh.client.resume()
    fresh.wait(ids)
    spent = fresh.daemon_s() - before
    fresh.client.pause()
    return spent
