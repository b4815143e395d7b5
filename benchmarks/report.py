"""The table: what was claimed, what was measured, and on what kind of machine.

Everything is text in Markdown, the same on the terminal and in the file. The machine is
described by what matters to the figures, and by nothing that names it.
"""

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime

from benchmarks.figures import Benchmark, Claim, Figures, Summary, summary


def report(
    benchmarks: list[Benchmark], samples: dict[str, list[Figures]], rounds: int
) -> str:
    """Write everything that a run found."""
    parts = [_heading(rounds), _claims(benchmarks, samples)]
    parts += [_figures(each, samples[each.name]) for each in benchmarks]
    return "\n\n".join(parts) + "\n"


def _heading(rounds: int) -> str:
    day = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    machine = (
        f"Linux {platform.release()}, {os.cpu_count()} CPUs,"
        f" Python {platform.python_version()}"
    )
    counted = "1 round" if rounds == 1 else f"{rounds} interleaved rounds"
    return f"# Benchmarks\n\n{day}; {machine}; {counted}; medians (min-max)"


def _claims(benchmarks: list[Benchmark], samples: dict[str, list[Figures]]) -> str:
    rows: list[tuple[str, ...]] = [("what", "median", "spread", "bar", "goal", "mark")]
    for benchmark in benchmarks:
        rows += [_claim(each, samples[benchmark.name]) for each in benchmark.claims]
    return _table(rows)


def _claim(claim: Claim, rounds: list[Figures]) -> tuple[str, ...]:
    found = summary([claim.of(figures) for figures in rounds])
    return (
        claim.what,
        f"{_number(found.median)} {claim.unit}",
        _spread(found),
        f"{_number(claim.bar)} {claim.unit}",
        f"{_number(claim.goal)} {claim.unit}",
        _mark(claim, found.median),
    )


def _mark(claim: Claim, value: float) -> str:
    if claim.meets(value, claim.goal):
        return "pass, goal reached"
    return "pass" if claim.meets(value, claim.bar) else "MISS"


def _figures(benchmark: Benchmark, rounds: list[Figures]) -> str:
    rows = [(benchmark.name, f"median, {benchmark.units}", "spread")]
    for name in sorted(rounds[0]):
        found = summary([figures[name] for figures in rounds])
        rows.append((name, _number(found.median), _spread(found)))
    notes = [f"- {note}." for note in benchmark.notes]
    return "\n".join([f"## {benchmark.name}", "", _table(rows), "", *notes]).rstrip()


def _spread(found: Summary) -> str:
    return f"{_number(found.low)} - {_number(found.high)}"


def _number(value: float) -> str:
    """Write three significant digits, or all of a larger number's whole ones."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, tuple("-" * width for width in widths))
    return "\n".join(_line(cells, widths) for cells in lines)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return f"| {' | '.join(padded)} |"
