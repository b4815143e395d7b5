"""Rounds: every contender once a round, in an order that turns by one each time.

Contenders of one benchmark run right after each other, so that they meet the same
machine; the turning order keeps any of them from always being the one that comes after
the same other.
"""

import sys

from benchmarks.figures import Benchmark, Figures


def run_rounds(benchmarks: list[Benchmark], rounds: int) -> dict[str, list[Figures]]:
    """Return, for each benchmark, the figures of each round."""
    samples: dict[str, list[Figures]] = {each.name: [] for each in benchmarks}
    for number in range(rounds):
        for benchmark in benchmarks:
            print(f"round {number + 1}: {benchmark.name}", file=sys.stderr, flush=True)
            samples[benchmark.name].append(_one_round(benchmark, number))
    return samples


def _one_round(benchmark: Benchmark, number: int) -> Figures:
    first = number % len(benchmark.contenders)
    order = benchmark.contenders[first:] + benchmark.contenders[:first]
    figures: dict[str, float] = {}
    for contender in order:
        figures.update(contender())
    return figures
