"""What a job asked for, was given and uses, as text."""

from __future__ import annotations

from grass.cli.printing.quantities import size_text
from grass.cli.printing.table import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from grass.cli.printing.table import Screen
    from grass.client.json_codec import Document

USAGE = ("USAGE", "ASKED", "GIVEN", "NOW", "PEAK")
_FIELDS = ("asked", "given", "now", "peak")
MEMORY, CPU = "memory", "cpu"
GPU_MEMORY, GPU_UTILIZATION = "gpu memory", "gpu utilization"


def usage_lines(job: Document, screen: Screen) -> list[str]:
    """Write a table with what was asked for, given and used; empty: nothing is known.

    What was measured in an unusual way is said below.
    """
    if not _was_measured(job):
        return []
    rows = [one for one in job["usage"] if _is_known(one)]
    table = lines(USAGE, [_row(one) for one in rows], screen)
    note = job.get("usage_note")
    return [*table, note] if note else table


def total(job: Document, what: str, field: str) -> float | None:
    """Return how much a job uses of one thing, on all units together."""
    known = [
        one[field]
        for one in job.get("usage") or ()
        if one["what"] == what and one[field] is not None
    ]
    return sum(known) if known else None


def amount(what: str, value: float | None) -> str:
    """Write an amount of one thing that is measured."""
    if value is None:
        return ""
    if what == GPU_UTILIZATION:
        return f"{value:.0f} %"
    if what == CPU:
        return cores(value)
    return size_text(value)


def cores(value: float) -> str:
    """Write how many cores are used: `3.9`, `4`."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value < 1 else f"{value:.3g}"


def in_short(job: Document) -> str:
    """Write the most that a job used: `memory 3.2 GiB of 8.0 GiB, cpu 3.9 of 4`."""
    if not _was_measured(job):
        return ""
    return ", ".join(_short(one) for one in job["usage"] if one["peak"] is not None)


def _was_measured(job: Document) -> bool:
    """Tell whether a job ran for long enough that more than its memory is known."""
    return any(
        one["now"] is not None or (one["peak"] is not None and one["what"] != MEMORY)
        for one in job.get("usage") or ()
    )


def _short(one: Document) -> str:
    given = one["asked"] if one["given"] is None else one["given"]
    of = "" if given is None else f" of {amount(one['what'], given)}"
    return f"{_label(one)} {amount(one['what'], one['peak'])}{of}"


def _is_known(one: Document) -> bool:
    return any(one[field] is not None for field in _FIELDS)


def _row(one: Document) -> list[str]:
    return [_label(one), *(amount(one["what"], one[field]) for field in _FIELDS)]


def _label(one: Document) -> str:
    """Write what is measured, with its unit: `gpu 0 memory`."""
    what: str = one["what"]
    if one["unit"] is None:
        return what
    kind, _, rest = what.partition(" ")
    return f"{kind} {one['unit']} {rest}"


def csv_lines(points: Iterable[Document]) -> list[str]:
    """Write a history as CSV: sizes in bytes, cores, percent."""
    known = list(points)
    units = sorted({unit for point in known for unit in point["gpus"]})
    header = ["at", "elapsed_s", "span_s", "memory", "cpu"]
    for unit in units:
        header += [f"gpu_{unit}_memory", f"gpu_{unit}_utilization"]
    rows = [header]
    for point in known:
        row = [point[name] for name in header[:5]]
        for unit in units:
            gpu = point["gpus"].get(unit) or {}
            row += [gpu.get("memory"), gpu.get("utilization")]
        rows.append(["" if one is None else str(one) for one in row])
    return [",".join(row) for row in rows]
