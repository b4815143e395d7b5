"""Jobs as a table for other programs: rows of CSV, or objects of JSON.

A column is a field of a job's document; `params.lr` is a value inside of one. In CSV
what is neither text nor a number is written as JSON, and a text that a spreadsheet
would run as a formula begins with `'`: a job's name must not run on other machines.
"""

import csv
import io
import re
from collections.abc import Iterable
from typing import Any

from grass.errors import UsageError
from grass.queries.documents import JsonObject, json_bytes

USUAL = (
    *("id", "name", "state", "queue", "project", "owner", "priority"),
    *("created_at", "started_at", "finished_at", "ran_s", "exit_code", "signal"),
    *("reason", "worker", "command"),
)
MOST_COLUMNS = 100
CSV, JSON = "csv", "json"
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z", re.ASCII)


def columns_from(text: str | None) -> tuple[str, ...]:
    """Read which columns are wanted."""
    if not text:
        return USUAL
    columns = tuple(one for one in text.split(",") if one)
    if len(columns) > MOST_COLUMNS:
        raise UsageError(f"at most {MOST_COLUMNS} columns at a time")
    return columns


def head(form: str, columns: Iterable[str]) -> bytes:
    """Return what comes before all jobs."""
    return _row(map(_text, columns)) if form == CSV else b"["


def body(
    form: str, columns: tuple[str, ...], jobs: list[JsonObject], *, first: bool
) -> bytes:
    """Return some jobs; `first` are those right after the head."""
    rows = [[_value(job, column) for column in columns] for job in jobs]
    if form == CSV:
        return b"".join(_row(map(_cell, row)) for row in rows)
    objects = (json_bytes(dict(zip(columns, row, strict=True))) for row in rows)
    text = b",\n".join(objects)
    return text if first or not rows else b",\n" + text


def tail(form: str) -> bytes:
    """Return what comes after all jobs."""
    return b"" if form == CSV else b"]\n"


def _value(job: JsonObject, column: str) -> Any:  # noqa: ANN401 -- of any field
    """Return a field, or a value inside of one; None where there is none."""
    if column in job:
        return job[column]
    field, _, inside = column.partition(".")
    found = job.get(field)
    return found.get(inside) if isinstance(found, dict) else None


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return json_bytes(value).decode()


def _text(text: str) -> str:
    """Return a text that is no formula; a number is none."""
    is_formula = _FORMULA.match(text) and not _NUMBER.match(text)
    return f"'{text}" if is_formula else text


def _row(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    # Only what may end a line is quoted, and some programs take a CR for an end.
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    line = text.getvalue().removesuffix("\r\n") + "\n"
    return line.encode(errors="replace")
