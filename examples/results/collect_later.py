"""Enqueue functions in one program, and collect what they return in another.

`python collect_later.py enqueue` adds the jobs and prints their numbers;
`python collect_later.py collect 1 9` prints the sum of what they returned, whenever and
wherever you run it.
"""

import sys

import grass


def simulate(seed: int) -> int:
    """Stand for something that takes an hour."""
    return seed * seed


def main(verb: str, *ids: str) -> None:
    """Enqueue the jobs, or collect their results."""
    if verb == "enqueue":
        jobs = grass.map(simulate, range(1, 10), at_most=4, project="simulation")
        print(jobs.ids[0], jobs.ids[-1])
    else:
        first, last = ids
        print("the sum is", sum(grass.jobs(f"{first}-{last}").results()))


if __name__ == "__main__":
    main(*sys.argv[1:])
