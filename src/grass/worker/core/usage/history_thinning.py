"""The history of an attempt's usage: fine where it is recent, coarser with age.

Lines are only ever appended. When there are many, older ones are joined, so that the
history of a week takes as many as that of an hour, about three times over.
"""

from collections.abc import Iterable

from grass.model.usage.attempt_usage import (
    ResourceUse,
    UnitUse,
    UsagePoint,
    larger,
    most,
)

MOST_POINTS = 4_500
"""With more of them, a history is thinned."""
MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
SPANS = ((10 * MINUTE, 0.0), (HOUR, 10.0), (DAY, MINUTE), (float("inf"), 10 * MINUTE))
"""Up to which age points span how many seconds; of a very long job even more."""
MOST_OLD = 1_500
"""The most points that are older than a day."""

_Gpu = tuple[int | None, float | None]


def thinned(points: list[UsagePoint]) -> list[UsagePoint]:
    """Join points by their age, which counts from the last one."""
    if not points:
        return []
    last_s = points[-1].at_s
    oldest = max(10 * MINUTE, (last_s - DAY) / MOST_OLD)
    kept: list[UsagePoint] = []
    for point in points:
        span_s = _span(last_s - point.at_s, oldest)
        if kept and point.at_s - (kept[-1].at_s - kept[-1].span_s) <= span_s:
            kept[-1] = joined(kept[-1], point)
        else:
            kept.append(point)
    return kept


def _span(age_s: float, oldest: float) -> float:
    span_s = next(span for up_to, span in SPANS if age_s < up_to)
    return oldest if age_s >= DAY else span_s


def joined(one: UsagePoint, other: UsagePoint) -> UsagePoint:
    """Return one point for two that follow each other."""
    weights = one.span_s, other.span_s
    nothing: _Gpu = (None, None)
    gpus = {}
    for unit in one.gpus.keys() | other.gpus.keys():
        first, second = one.gpus.get(unit, nothing), other.gpus.get(unit, nothing)
        memory = larger(first[0], second[0])
        gpus[unit] = memory, _mean(first[1], second[1], weights)
    return UsagePoint(
        other.at_s,
        round(other.at_s - one.at_s + one.span_s, 2),
        max(one.memory, other.memory),
        _mean(one.cpu, other.cpu, weights),
        dict(sorted(gpus.items())),
    )


def _mean(
    one: float | None, other: float | None, weights: tuple[float, float]
) -> float | None:
    if one is None or other is None:
        return larger(one, other)
    total = sum(weights)
    if not total:
        return other
    return round((one * weights[0] + other * weights[1]) / total, 2)


def peak_of(points: Iterable[UsagePoint]) -> ResourceUse:
    """Return the most of each that a history tells of."""
    return most(
        ResourceUse(
            point.memory,
            point.cpu,
            {unit: UnitUse(*values) for unit, values in point.gpus.items()},
        )
        for point in points
    )
