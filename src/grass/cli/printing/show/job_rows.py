"""The table of jobs: a row for each job or array, in the columns that were asked for.

On a terminal states have signs and colours, ended jobs are dimmed, and a reason is a
line of its own below the rows that have it, so that the command keeps its place. In a
pipe each job is one line of words.
"""

from __future__ import annotations

from grass.cli.printing.command_text import in_a_row
from grass.cli.printing.quantities import utc_now
from grass.cli.printing.show import array_rows
from grass.cli.printing.show.columns import held_units
from grass.cli.printing.styled import Styled
from grass.cli.printing.table import Fit, TableRow, lines
from grass.cli.printing.wording import ENDED_STATES, TINTS, reason, state, units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grass.cli.printing.show.columns import Column
    from grass.cli.printing.show.show_options import ShowOptions
    from grass.cli.printing.table import Cell, Screen
    from grass.client.json_codec import Document

_FIRM = ("id", "state", "time")
_SPARE = ("queue", "owner", "units", "worker")
"""Columns that are left out where the command has no room, the first one first."""
_ALIKE = ("worker", "owner")
"""Columns that are left out where all jobs have the same."""


class JobTable:
    """The lines of the table, and how many of them are of running jobs."""

    def __init__(
        self,
        wanted: ShowOptions,
        jobs: Iterable[Document],
        arrays: Sequence[Document],
        screen: Screen,
    ) -> None:
        self._screen = screen
        self._now = utc_now()
        self._usual = wanted.has_usual_columns
        self._drawn = screen.width is not None and self._usual
        self.covered: dict[str, int] = {}
        """The jobs that the rows stand for, by state."""
        self.running = 0
        """How many rows have a running job."""
        self.documents = list(array_rows.with_arrays(jobs, arrays))
        """The jobs and arrays that have a row, in their order."""
        self.heights: list[int] = []
        """How many lines each row has."""
        columns = self._columns(wanted)
        rows = [self._row(row, columns) for row in self.documents]
        self.lines = self._laid_out(columns, rows) if rows else []

    def _columns(self, wanted: ShowOptions) -> list[Column]:
        if not self._drawn:
            return wanted.columns
        return [column for column in wanted.columns if column.name != "reason"]

    def _row(self, row: Document, columns: Sequence[Column]) -> TableRow:
        self._count(row)
        cells = [self._cell(column, row) for column in columns]
        ended = row["state"] in ENDED_STATES
        shown = TableRow(cells, tint="dim" if ended else "")
        if self._drawn:
            if told := _below(row):
                shown.below = Styled((told, "dim" if ended else "yellow"))
            if "members" in row:
                self._span(shown, row, [column.name for column in columns])
        return shown

    def _span(self, shown: TableRow, row: Document, names: list[str]) -> None:
        """Draw an array's bar for its state, and its counts over the last columns."""
        since, first = str(shown[names.index("time")]), names.index("worker")
        signs = self._screen.signs
        span = array_rows.span(row, since, in_a_row(row), signs)
        shown[names.index("state")] = array_rows.bar(row, signs)
        shown[first:] = [span] * (len(names) - first)

    def _cell(self, column: Column, row: Document) -> Cell:
        if self._screen.width is not None and column.name == "state":
            return self._state(row)
        if self._drawn and column.name == "units":
            return _special_units(row)
        return column.cell(row, self._now)

    def _state(self, row: Document) -> Styled:
        word = state(row)
        code = row["exit_code"] if word == "failed" and self._usual else None
        text = word if code is None else f"{word} ({code})"
        tint = TINTS.get(word.partition(",")[0], "")
        return Styled((self._screen.signs.of(word) + text, tint))

    def _count(self, row: Document) -> None:
        self.running += row["state"] == "running"
        for one, count in row.get("members", {row["state"]: 1}).items():
            self.covered[one] = self.covered.get(one, 0) + count

    def _laid_out(self, columns: list[Column], rows: list[TableRow]) -> list[str]:
        if self._usual:
            columns = self._without_alike(columns, rows)
        if self._drawn:
            _join_reasons(rows, self._screen.signs.branch)
        self.heights = [1 if row.below is None else 2 for row in rows]
        names = [column.name for column in columns]
        spare = [names.index(name) for name in _SPARE if name in names]
        firm = [at for at, name in enumerate(names) if name in _FIRM]
        fit = Fit(firm, spare if self._usual else ())
        return lines([one.header for one in columns], rows, self._screen, None, fit)

    def _without_alike(
        self, columns: list[Column], rows: list[TableRow]
    ) -> list[Column]:
        """Leave out columns that say the same of all jobs, or nothing of any."""
        left = columns
        for column in columns:
            at = left.index(column)
            told = {str(row[at]) for row in rows} - {""}
            on_terminal = self._screen.width is not None and column.name == "queue"
            alike = column.name in _ALIKE or on_terminal
            if (alike and len(told) < 2) or (column.name == "reason" and not told):
                left = left[:at] + left[at + 1 :]
                for row in rows:
                    del row[at]
        return left


def _special_units(row: Document) -> str:
    """Write a job's units; cores and memory only where it has nothing else."""
    held = held_units(row)
    return units({k: v for k, v in held.items() if k not in ("cpu", "ram")} or held)


def _join_reasons(rows: list[TableRow], branch: str) -> None:
    """Leave a reason only below the last of the rows in a run that have it."""
    alike = 0
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if row.below is None:
            continue
        alike += 1
        if after is not None and str(row.below) == str(after.below):
            row.below = None
            continue
        among = {1: "", 2: "both: "}.get(alike, f"all {alike}: ")
        row.below = Styled((branch + among, row.below.pieces[0][1])) + row.below
        alike = 0


def _below(job: Document) -> str:
    """Return why a job waits or has ended so, unless its state says as much."""
    told = reason(job)
    return "" if told in (job["state"], f"exit {job['exit_code']}") else told
