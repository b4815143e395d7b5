"""Planted bugs, each a small change to the real code, and the hunt for them.

A hunt runs seeds with one bug in the code until one of them fails.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from importlib import import_module
from typing import NamedTuple

import pytest

from tests.simulation.runner import Result, run_seed

MOST_SEEDS = 3000
"""The rarest bug needs a program that ignores SIGTERM, on a machine that sleeps until
its lease is over and given up: seed 1859 was the first to find it."""

Plant = Callable[[pytest.MonkeyPatch], None]
_BUGS: dict[str, Plant] = {}
_LIKELY: dict[str, int] = {}
"""The seeds that have found rare bugs lately; others may do so tomorrow."""


_RUNS: dict[str, Callable[[int], Result]] = {}


class Catch(NamedTuple):
    """A bug, the seed that found it, and the problem that this seed had."""

    bug: str
    seed: int | None
    problem: str


def bug(
    name: str, likely: int = 0, run: Callable[[int], Result] = run_seed
) -> Callable[[Plant], Plant]:
    """Add a bug to the list, with the seed that is tried first."""

    def listed(plant: Plant) -> Plant:
        _BUGS[name], _LIKELY[name], _RUNS[name] = plant, likely, run
        return plant

    return listed


def bugs() -> dict[str, Plant]:
    """Return all planted bugs, from the modules that plant them."""
    for part in ("in_broker", "below", "across", "in_leading", "blobs"):
        import_module(f"tests.simulation.planted_{part}")
    return _BUGS


def hunt(bug: str, likely: int | None = None) -> Catch:
    """Run seeds with a bug in the code until one of them fails, a likely one first."""
    with pytest.MonkeyPatch.context() as patch:
        bugs()[bug](patch)
        first = _LIKELY[bug] if likely is None else likely
        for seed in (first, *range(MOST_SEEDS)):
            problem = _RUNS[bug](seed).problem
            if problem is not None:
                return Catch(bug, seed, problem)
    return Catch(bug, None, f"not found within {MOST_SEEDS} seeds")


def hunt_all(pool: Executor) -> Iterator[Catch]:
    """Hunt each bug of the list."""
    return pool.map(hunt, bugs())
