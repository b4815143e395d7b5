"""What is measured: figures, and the claims that are judged by them.

A contender gives named figures once a round. A claim is worked out from the figures of
one round and never mixes rounds, so that a slow minute of the machine touches both
sides of a ratio. Medians and spreads are taken over the rounds at the end.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Figures = Mapping[str, float]
"""Name to value, of one contender or of one whole round."""

Contender = Callable[[], Figures]


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the table: a value with a bar to pass and a goal to reach."""

    what: str
    of: Callable[[Figures], float]
    bar: float
    goal: float
    unit: str = ""
    at_most: bool = False
    """Smaller is better: the value must not exceed the bar."""

    def meets(self, value: float, mark: float) -> bool:
        """Tell whether a value is as good as a mark."""
        return value <= mark if self.at_most else value >= mark


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Contenders that are measured in turn, and what is claimed of them."""

    name: str
    contenders: list[Contender]
    claims: list[Claim]
    units: str
    """The unit of every figure that the contenders give."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Summary:
    """The middle and the ends of the values of all rounds."""

    median: float
    low: float
    high: float


def summary(values: list[float]) -> Summary:
    """Sum up the values of all rounds."""
    return Summary(statistics.median(values), min(values), max(values))


def percentile(values: list[float], percent: float) -> float:
    """Return the value that so many percent of all do not exceed."""
    ordered = sorted(values)
    position = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(position) - 1)]
