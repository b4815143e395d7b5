"""`make simulate SEEDS=20000`: many fresh seeds on all cores, and a summary.

Those that once failed are run first. `FIRST=7000000` gives the first of the others.
Afterwards every planted bug must be found: seeds that cannot fail prove nothing.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor

from tests.simulation import fresh_seeds
from tests.simulation.planting import hunt_all
from tests.simulation.runner import (
    Result,
    kept_seeds,
    run_brokers_seed,
    run_seed,
)

MOST_TRACES = 5


def main() -> int:
    """Run the seeds; the exit code is 0 if all passed and all bugs were found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=fresh_seeds.first_seed())
    options = parser.parse_args()
    fresh = range(options.first, options.first + options.seeds)
    _say(
        f"{len(fresh):,} seeds from {options.first}; FIRST={options.first} repeats them"
    )
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        _say("one broker")
        kept = [*kept_seeds("seeds.txt"), *fresh_seeds.failed("broker")]
        passed = _run(pool, [*kept, *fresh], run_seed)
        _say("several brokers on one store")
        kept = [*kept_seeds("brokers_seeds.txt"), *fresh_seeds.failed("brokers")]
        passed &= _run(pool, [*kept, *fresh], run_brokers_seed)
        found = _hunt(pool)
    return 0 if passed and found else 1


def _run(pool: Executor, seeds: list[int], run: Callable[[int], Result]) -> bool:
    began = time.perf_counter()
    events, faults, failed = 0, Counter[str](), list[Result]()
    for result in pool.map(run, seeds, chunksize=25):
        events += result.events
        faults += result.faults
        if result.problem is not None:
            failed.append(result)
    _print(len(seeds), events, faults, time.perf_counter() - began)
    reports = [fresh_seeds.keep(result) for result in failed]
    for report in reports[:MOST_TRACES]:
        _say(report)
    _say(f"violations       {len(failed)}  {[one.seed for one in failed][:20]}")
    return not failed


def _hunt(pool: Executor) -> bool:
    """Print by which seed each planted bug was found."""
    catches = sorted(hunt_all(pool), key=lambda catch: catch.seed or 0)
    found = [catch for catch in catches if catch.seed is not None]
    _say(f"planted bugs     {len(found)} of {len(catches)} found")
    for catch in catches:
        by = "never" if catch.seed is None else f"seed {catch.seed}"
        _say(f"  {by:<10} {catch.bug}")
    return len(found) == len(catches)


def _print(seeds: int, events: int, faults: Counter[str], took_s: float) -> None:
    _say(f"seeds            {seeds:,}")
    _say(f"events           {events:,}")
    _say(f"events a second  {events / took_s:,.0f}")
    _say(f"faults           {faults.total():,}")
    for kind, count in sorted(faults.items()):
        _say(f"  {kind:<22} {count:,}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
