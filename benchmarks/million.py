"""A million members of arrays that wait, against a thousand, in as many arrays.

Both daemons are up at the same time. What a call costs is counted in the daemon's own
processor time, so that other load on the machine matters little; only the restart is a
time of the clock. The calls are those that the commands make.
"""

from collections.abc import Callable
from functools import partial

from benchmarks.figures import Benchmark, Claim, Figures
from benchmarks.fresh_home import ONE_SLOT, FreshHome, fresh_home
from benchmarks.sizes import Sizes
from grass.errors import TimedOut

_ARRAYS = 10
"""As many rows are looked at in either queue."""
_MB = 1_000_000
_RESIDENT, _AGAIN = "resident, MB", "resident after a restart, MB"
_RESTART, _RESTART_CPU = "restart, s", "restart, s of a processor"
_JOB = "a job from enqueue to end, us"


def million(sizes: Sizes) -> Benchmark:
    """Return the short and the long queue."""
    few, many = f"{sizes.short_queue:,}", f"{sizes.long_queue:,}"
    claims = [_ratio(_JOB, few, many, 1.5, 1.2)]
    claims += [_ratio(name, few, many, 2.0, 1.3) for name in _looks(None, 1)]
    most = (lambda f: max(f[_RESIDENT], f[_AGAIN])), 400, 300
    claims.append(_limit(f"resident with {many} members of arrays", "MB", *most))
    took = (lambda f: f[_RESTART]), 6, 5
    claims.append(_limit(f"restart with {many} members of arrays", "s", *took))
    return Benchmark(
        "million",
        [lambda: _both(sizes, few, many)],
        claims,
        "of the daemon's time in ms, if not named otherwise",
    )


def _ratio(name: str, few: str, many: str, bar: float, goal: float) -> Claim:
    what = name.partition(",")[0]
    return Claim(
        f"daemon's time for {what}, {many} queued against {few}",
        lambda f: f[f"{name}, {many} queued"] / f[f"{name}, {few} queued"],
        bar=bar,
        goal=goal,
        unit="x",
        at_most=True,
    )


def _limit(
    what: str, unit: str, of: Callable[[Figures], float], bar: float, goal: float
) -> Claim:
    return Claim(what, of, bar=bar, goal=goal, unit=unit, at_most=True)


def _both(sizes: Sizes, few: str, many: str) -> Figures:
    figures: dict[str, float] = {}
    with fresh_home(slots=2) as short, fresh_home(slots=2) as long:
        for fresh, members in ((short, sizes.short_queue), (long, sizes.long_queue)):
            fresh.client.pause()
            _fill(fresh, members)
        figures[_RESIDENT] = _resident(long)
        jobs = {few: (short, sizes.short_queue), many: (long, sizes.long_queue)}
        for label, (fresh, members) in jobs.items():
            _job_us(fresh, sizes.backlog_jobs // 4)
            for name, look in _looks(fresh, members).items():
                cost = _look_ms(fresh, look, sizes.looks)
                figures[f"{name}, {label} queued"] = cost
        for label in (few, many):
            cost = _job_us(jobs[label][0], sizes.backlog_jobs)
            figures[f"{_JOB}, {label} queued"] = cost
        figures[_RESTART] = long.restart()
        figures[_RESTART_CPU] = long.daemon_s()
        figures[_AGAIN] = _resident(long)
    return figures


def _fill(fresh: FreshHome, members: int) -> None:
    for _ in range(_ARRAYS):
        array = f"0-{members // _ARRAYS - 1}"
        fresh.client.enqueue_many([["true"]], array=array, **ONE_SLOT)


def _looks(fresh: FreshHome | None, last: int) -> dict[str, Callable[[], object]]:
    """Name what people look at; without a daemon only the names count."""
    if fresh is None:
        return dict.fromkeys(
            (
                "show",
                "show a queue",
                "show a job",
                "show a state",
                "events",
                "explain",
                "wait for a job",
                "wait for all",
            ),
            object,
        )
    client = fresh.client
    return {
        "show": client.overview,
        "show a queue": partial(client.overview, ONE_SLOT["queue"]),
        "show a job": partial(client.job, last),
        "show a state": lambda: list(client.jobs(states=["running"])),
        "events": lambda: list(client.events(after=_last_event(fresh) - 50)),
        "explain": partial(client.explain, last),
        "wait for a job": partial(_wait, client.wait, [str(last)], 0.0),
        "wait for all": partial(_wait, client.wait_all, 0.0),
    }


def _last_event(fresh: FreshHome) -> int:
    return max(50, int(fresh.client.overview()["daemon"]["last_event"]))


def _wait(wait: Callable[..., object], *how: object) -> None:
    try:
        wait(*how)
    except TimedOut:
        return
    raise RuntimeError("a job of a paused queue has ended")


def _look_ms(fresh: FreshHome, look: Callable[[], object], times: int) -> float:
    look()
    before = fresh.daemon_s()
    for _ in range(times):
        look()
    # Less than a tick of the kernel's clock in all is as good as nothing.
    return max(0.01, fresh.daemon_s() - before) / times * 1e3


def _job_us(fresh: FreshHome, jobs: int) -> float:
    """Run jobs before all others through a paused daemon, and pause it again."""
    before = fresh.daemon_s()
    ids = fresh.client.enqueue_many([["true"]] * jobs, priority=1, **ONE_SLOT)
    fresh.client.resume()
    fresh.wait(ids)
    spent = fresh.daemon_s() - before
    fresh.client.pause()
    return spent / jobs * 1e6


def _resident(fresh: FreshHome) -> float:
    return float(fresh.processes()[0].memory_info().rss) / _MB
