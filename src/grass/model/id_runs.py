"""Ids that follow on each other, as pairs of the first and the last."""

from collections.abc import Container, Iterable, Sequence
from itertools import filterfalse

Runs = Sequence[tuple[int, int]]


def runs(ids: Iterable[int]) -> list[tuple[int, int]]:
    """Join ids that follow on each other."""
    joined: list[tuple[int, int]] = []
    for one in sorted(ids):
        if joined and joined[-1][1] + 1 == one:
            joined[-1] = (joined[-1][0], one)
        else:
            joined.append((one, one))
    return joined


def merged_runs(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join ranges that overlap or follow on each other; sort them."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined


def runs_without(ranges: Runs, excluded: Container[int]) -> list[tuple[int, int]]:
    """Return what is left of ranges without some ids."""
    return runs(
        number
        for first, last in ranges
        for number in filterfalse(excluded.__contains__, range(first, last + 1))
    )
