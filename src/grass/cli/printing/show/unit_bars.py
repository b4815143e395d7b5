"""The table of workers: what each has of a kind, how much is free, and bars.

On a terminal a kind has a bar of what jobs hold of it, or one for each of its units if
these are few. In a pipe each unit is written out with its numbers.
"""

from __future__ import annotations

from grass.cli.printing.show.summary import (
    FAULTY,
    WORKERS,
    folded,
    full_name,
    unit_marks,
    worker_rows,
)
from grass.cli.printing.styled import Styled
from grass.cli.printing.table import Fit, lines
from grass.cli.printing.wording import TINTS, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from grass.cli.printing.signs import Signs
    from grass.cli.printing.table import Cell, Screen
    from grass.client.json_codec import Document

HEADER = ("WORKER", "KIND", "FREE", "HELD")
_MOST_BARS = 8
"""Units that have a bar each; of more, one bar stands for all."""
_WIDE, _NARROW, _ONE = 4, 2, 10
_WIDEST = 20
_TINTS = {"declared": "cyan", FAULTY: "red"}


def worker_lines(workers: Iterable[Document], screen: Screen) -> list[str]:
    """Write the table of workers, as the screen can show it."""
    if screen.width is None:
        return lines(WORKERS, worker_rows(workers), screen, TINTS)
    rows = [row for worker in workers for row in _rows(worker, screen.signs)]
    return lines(HEADER, rows, screen, TINTS, Fit(firm=(0, 1, 2)))


def folded_lines(workers: Iterable[Document], screen: Screen) -> list[str]:
    """Write what is free of all workers on a line for each."""
    return [screen.line(_folded(worker)) for worker in workers]


def _rows(worker: Document, signs: Signs) -> Iterator[list[Cell]]:
    name = full_name(worker)
    for kind, units in worker["capacity"].items():
        free = worker["free"].get(kind, {})
        spare = sum(free.get(unit, 0) for unit in units)
        text = f"{number(spare, kind)} of {number(sum(units.values()), kind)}"
        faulty = unit_marks(worker, kind)[FAULTY]
        bars = _bars(units, free, faulty, signs)
        yield [name, kind, text, bars + _remark(worker, kind)]
        name = ""


def _bars(
    units: Mapping[str, float],
    free: Mapping[str, float],
    faulty: Sequence[str],
    signs: Signs,
) -> Styled:
    if not 1 < len(units) <= _MOST_BARS:
        width = _ONE if len(units) == 1 else min(len(units), _WIDEST)
        working = {unit: units[unit] for unit in units if unit not in faulty}
        if not working:
            return _out_of_use(width)
        return _bar(
            sum(working.values()), sum(free.get(u, 0) for u in working), width, signs
        )
    width = _WIDE if len(units) <= _MOST_BARS // 2 else _NARROW
    drawn = Styled()
    for place, (unit, amount) in enumerate(units.items()):
        drawn += Styled((f"{'  ' if place else ''}{unit} ", ""))
        drawn += (
            _out_of_use(width)
            if unit in faulty
            else _bar(amount, free.get(unit, 0), width, signs)
        )
    return drawn


def _out_of_use(width: int) -> Styled:
    return Styled(("-" * width, "red"))


def _bar(amount: float, free: float, width: int, signs: Signs) -> Styled:
    held, rest = signs.bar(1 - free / amount if amount else 0, width)
    return Styled((held, "cyan"), (rest, "dim"))


def _remark(worker: Document, kind: str) -> Styled:
    """Write which units are declared, not found, and which have a mark."""
    units = worker["capacity"][kind]
    origins = worker["origin"].get(kind, {})
    declared = [unit for unit in units if origins.get(unit) == "declared"]
    remarks = Styled()
    marks = {"declared": declared, **unit_marks(worker, kind)}
    for word, named in marks.items():
        tint = _TINTS.get(word, "yellow")
        if named:
            which = "" if len(named) == len(units) else _which(named)
            remarks += Styled((f"  {which}{word}", tint))
    return remarks


def _which(units: Iterable[str]) -> str:
    runs = folded(dict.fromkeys(units, ""))
    return ",".join(run.removesuffix(": ") for run in runs) + " "


def _folded(worker: Document) -> Styled:
    parts = []
    for kind, units in worker["capacity"].items():
        free = worker["free"].get(kind, {})
        spare = number(sum(free.get(unit, 0) for unit in units), kind)
        parts.append(f"{kind} {spare}/{number(sum(units.values()), kind)}")
    return Styled((full_name(worker), "bold"), ("  free: " + ", ".join(parts), ""))
