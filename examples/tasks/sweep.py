"""A parameter sweep: every combination is a task, the best one wins."""

from itertools import product

import grass


def train(rate: float, layers: int) -> float:
    """Stand in for a training; return its loss."""
    return abs(rate - 0.01) + abs(layers - 3)


async def main() -> None:
    """Train with all combinations, side by side as far as there are cores."""
    space = list(product([0.1, 0.01, 0.001], [2, 3, 4]))
    async with grass.open_waitgroup() as wg:
        for rate, layers in space:
            wg.submit(grass.Cores(1), train, rate, layers=layers)
    loss, best = min(zip(wg.results, space, strict=True))
    print(f"best of {len(space)}: rate {best[0]}, layers {best[1]}, loss {loss:g}")


grass.run_combine(main)
