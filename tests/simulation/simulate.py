"""`make simulate SEEDS=20000`: many seeds on all cores, and what they came to."""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.runner import Result, run_seed

MOST_STORIES = 5


def main() -> int:
    """Run the seeds that are asked for; the exit code tells whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    began = time.perf_counter()
    events, faults, failed = 0, Counter[str](), list[Result]()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        seeds = range(asked.first, asked.first + asked.seeds)
        for result in pool.map(run_seed, seeds, chunksize=25):
            events += result.events
            faults += result.faults
            if result.problem is not None:
                failed.append(result)
    _print(asked.seeds, events, faults, time.perf_counter() - began)
    for result in failed[:MOST_STORIES]:
        _say(result.story())
    _say(f"violations       {len(failed)}  {[one.seed for one in failed][:20]}")
    return 1 if failed else 0


def _print(seeds: int, events: int, faults: Counter[str], took_s: float) -> None:
    _say(f"seeds            {seeds:,}")
    _say(f"events           {events:,}")
    _say(f"events a second  {events / took_s:,.0f}")
    _say(f"faults           {faults.total():,}")
    for kind, count in sorted(faults.items()):
        _say(f"  {kind:<22} {count:,}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
