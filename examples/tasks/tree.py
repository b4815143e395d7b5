"""A nested tree: each part splits its work, and waits for its own parts only."""

from functools import partial

import grass


def total(first: int, last: int) -> int:
    """Add the numbers of one leaf."""
    return sum(range(first, last))


async def split(first: int, last: int) -> int:
    """Add numbers: two halves side by side, or one leaf."""
    if last - first <= 250:
        return int(await grass.exec1(grass.Cores(1), total, first, last))
    middle = (first + last) // 2
    async with grass.open_waitgroup() as wg:
        wg.start_subtask(split, first, middle)
        wg.start_subtask(split, middle, last)
    return sum(wg.results)


print("the sum is", grass.run_combine(partial(split, 0, 1000)))
