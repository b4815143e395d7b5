"""Functions on several machines: `python lab_machines.py node1:7501 node2:7501`.

Each address is a broker that this machine has joined. This machine takes part, too.
"""

import sys
import time

import grass as grain


def estimate(seed: int, points: int) -> tuple[str, float]:
    """Estimate pi, and tell where that was done."""
    import random

    chance = random.Random(seed)
    hits = sum(chance.random() ** 2 + chance.random() ** 2 < 1 for _ in range(points))
    return grain.GVAR.instance, 4 * hits / points


async def main() -> None:
    """Run sixty estimates wherever a core is free, and print their mean."""
    began = time.monotonic()
    async with grain.open_waitgroup() as wg:
        for seed in range(60):
            wg.submit(grain.Cores(1), estimate, seed, points=200_000)
    places = sorted({place for place, _ in wg.results})
    mean = sum(value for _, value in wg.results) / len(wg.results)
    print(f"pi is about {mean:.2f}, by {', '.join(places)}")
    print(f"it took {time.monotonic() - began:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    grain.run_combine(main, sys.argv[1:], grain.Node(N=1, M=0.1))
