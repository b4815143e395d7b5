"""`grass show`: workers, queues and jobs as tables, all details of one job, or JSON."""

from __future__ import annotations

import sys
from codecs import iterdecode

from grass.cli.parsing.options import BROKER, JSON, Command, Option, read
from grass.cli.printing.show import columns
from grass.cli.printing.show.show_options import FILTERS, ShowOptions
from grass.cli.printing.show.show_views import (
    AsJson,
    AsNames,
    AsText,
    JobsView,
    JobView,
    Overview,
)
from grass.cli.printing.streams import printable, safe_lines
from grass.cli.printing.table import this_screen
from grass.client.client import Client
from grass.errors import UsageError
from grass.model.durations import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.cli.parsing.options import Values
    from grass.cli.printing.show.show_views import Form, ShowView

OPTIONS = (
    *FILTERS,
    Option("--queues", about="only the queues"),
    Option("--workers", about="only the workers"),
    Option("-q, --quiet", about="only ids, or names of queues or workers"),
    Option(
        "--watch",
        "[SECONDS]",
        "redraw on every change, at most every SECONDS (0.5), until q",
    ),
    Option("--csv", "[FIELDS]", "all jobs that match, for spreadsheets: id,params.lr"),
    BROKER,
    JSON,
)
_NOT_WITH_CSV = (
    *("json", "quiet", "watch", "queues", "workers"),
    *("limit", "sort", "columns"),
)
QUICKEST_S = 0.5
"""A watched view is redrawn no more often than this."""


def run(words: list[str]) -> int:
    """Print workers, queues and jobs."""
    values, rest = read(OPTIONS, words)
    if values.has("csv"):
        return _export(values, rest)
    view = _view(values, ShowOptions(values, rest))
    form = _form(values)
    with Client(broker=values.broker) as client:
        if values.has("watch"):
            from grass.cli.printing.live_screen import watch

            watch(client, view, form, _seconds(values))
        else:
            form.write(view, view.read(client), this_screen())
    return 0


def _export(values: Values, words: list[str]) -> int:
    """Print all jobs that match as CSV; a column is a field of a job's document."""
    for other in _NOT_WITH_CSV:
        if values.has(other):
            raise UsageError(
                f"--csv does not go with --{other}", "leave one of them out"
            )
    wanted = ShowOptions(values, words).wanted()
    with Client(broker=values.broker) as client:
        pieces = client.export(columns=values.text("csv") or None, **wanted)
        for text in iterdecode(pieces, "utf-8"):
            # A program gets what there is, a terminal no control codes.
            shown = safe_lines(text) if sys.stdout.isatty() else text
            sys.stdout.write(printable(shown))
    return 0


def _view(values: Values, wanted: ShowOptions) -> ShowView:
    parts = tuple(part for part in ("workers", "queues") if values.has(part))
    if wanted.is_plain and not parts:
        whole = ("workers", "queues", "jobs")
        return Overview(wanted, whole if wanted.queue is None else whole[1:])
    if wanted.is_plain:
        return Overview(wanted, parts)
    if parts:
        raise UsageError(f"--{parts[0]} shows no jobs", "leave out what selects jobs")
    if wanted.names_one(values):
        return JobView(wanted.select[0])
    return JobsView(wanted)


def _form(values: Values) -> Form:
    if values.has("json"):
        return AsJson()
    return AsNames() if values.has("quiet") else AsText()


def _seconds(values: Values) -> float:
    text = values.text("watch")
    return seconds(text) if text else QUICKEST_S


COMMAND = Command(
    usage="[QUEUE] [SELECTOR...] [OPTIONS]",
    about=(
        "Show workers (what is free of each unit, and whether it was found or "
        "declared), queues, and jobs: running ones, the next, and recent ones, or all. "
        "With a QUEUE, only that queue and its jobs. With one job's id, everything "
        "about that job. With selectors, the jobs that they mean together; options "
        "narrow that down. An array is one row, unless its ids or --members are given. "
        + columns.about_all()
    ),
    options=OPTIONS,
    examples=(
        "grass show",
        "grass show 7",
        "grass show q1 --all",
        "grass show @thesis --members",
        "grass show state:failed --columns id,name,exit,ran --sort -ran",
        "grass show --watch @thesis",
        "grass show --all --json",
        "grass show @thesis --csv=id,name,state,params.lr,ran_s > runs.csv",
    ),
    run=run,
)
