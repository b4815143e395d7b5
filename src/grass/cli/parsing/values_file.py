"""Parameters from a file: `--from values.txt -- python t.py {1} {2}`.

Each line is one job, and its values are separated by tabs. A file whose first line
begins with `{` has JSON objects instead: `{"lr": 0.1, "bs": 8}` gives values to `{lr}`
and `{bs}`. Empty lines are skipped. An error names the line it is on.
"""

from __future__ import annotations

import json
from typing import Any

from grass.cli.parsing.jobs_file import label, text_of
from grass.errors import UsageError
from grass.model.jobs.params import positions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document


class ValuesFile:
    """The parameters of a file, and the line of each row."""

    def __init__(self, source: str) -> None:
        """Read the whole file; `-` is stdin."""
        self._label = label(source)
        lines = [
            (number, line.removesuffix("\r"))
            for number, line in enumerate(text_of(source).split("\n"), 1)
            if line.strip()
        ]
        if not lines:
            raise UsageError(f"{self._label} holds no values")
        self._numbers = [number for number, _ in lines]
        self.params = self._read([line for _, line in lines])

    def place(self, row: int) -> str:
        """Return where a row stands, as the beginning of an error."""
        return f"{self._label}, line {self._numbers[row - 1]}: "

    def _read(self, lines: list[str]) -> Document:
        if lines[0].lstrip().startswith("{"):
            return self._objects(lines)
        rows = [line.split("\t") for line in lines]
        for number, row in enumerate(rows, 1):
            if len(row) != len(rows[0]):
                raise UsageError(
                    f"{self.place(number)}{len(row)} values, and {len(rows[0])} in"
                    f" line {self._numbers[0]}",
                    "tabs separate the values of a line",
                )
        return {"names": positions(len(rows[0])), "rows": rows}

    def _objects(self, lines: list[str]) -> Document:
        found = [self._object(number, line) for number, line in enumerate(lines, 1)]
        names = list(found[0])
        for number, one in enumerate(found, 1):
            if one.keys() != found[0].keys():
                raise UsageError(
                    f"{self.place(number)}has {', '.join(one)}, and line"
                    f" {self._numbers[0]} has {', '.join(names)}",
                    "every line gives the same parameters",
                )
        return {
            "names": names,
            "rows": [[one[name] for name in names] for one in found],
        }

    def _object(self, number: int, line: str) -> dict[str, str]:
        try:
            values = json.loads(line)
        except ValueError as error:
            raise UsageError(f"{self.place(number)}{error}") from None
        if not isinstance(values, dict):
            raise UsageError(f'{self.place(number)}write {{"lr": 0.1, "bs": 8}}')
        for name, value in values.items():
            if not isinstance(value, str | int | float):
                raise UsageError(
                    f'{self.place(number)}field "{name}": a value is text or a number'
                )
        return {name: _text(value) for name, value in values.items()}


def _text(value: Any) -> str:  # noqa: ANN401 -- of JSON
    return value if isinstance(value, str) else json.dumps(value)
