"""`grass usage`: what a job used over time, as a table, CSV or JSON."""

from __future__ import annotations

import sys

from grass.cli.parsing.options import BROKER, JSON, Command, Option, one_word, read
from grass.cli.printing.quantities import brief, local
from grass.cli.printing.streams import print_document, printable
from grass.cli.printing.table import render, this_screen
from grass.cli.printing.usage_text import (
    CPU,
    GPU_MEMORY,
    GPU_UTILIZATION,
    MEMORY,
    amount,
    csv_lines,
)
from grass.client.client import Client
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.cli.parsing.options import Values
    from grass.client.json_codec import Document

OPTIONS = (
    Option("--attempt", "N", "that attempt's, not the last one's"),
    Option("--worker", "NAME", "whose GPU, where there are several workers"),
    Option("--csv", about="every point, as comma-separated values"),
    BROKER,
    JSON,
)
_BY_TENTHS_S = 10.0
MOST_ROWS = 20
"""The most points of a table; more are joined."""


def run(words: list[str]) -> int:
    """Print what a job used over time."""
    values, rest = read(OPTIONS, words)
    if values.has("csv") and values.has("json"):
        raise UsageError("--csv and --json are two forms", "choose one of them")
    attempt = values.whole_number("attempt")
    with Client(broker=values.broker) as client:
        document = _history(client, one_word(rest, "the job"), attempt, values)
    if values.has("json"):
        print_document(document)
    elif values.has("csv"):
        sys.stdout.write("".join(line + "\n" for line in csv_lines(document["points"])))
    else:
        sys.stdout.write(printable(_table(document)))
    return 0


def _history(
    client: Client, word: str, attempt: int | None, values: Values
) -> Document:
    kind, colon, unit = word.partition(":")
    if not colon or kind != "gpu":
        return client.usage(word, attempt)
    worker = values.text("worker")
    if worker is None:
        names = [one["name"] for one in client.workers()["workers"]]
        if len(names) != 1:
            raise UsageError(f"there are {len(names)} workers", "name one: --worker")
        worker = names[0]
    return client.gpu_usage(worker, unit)


def _table(document: Document) -> str:
    points = fewer(document["points"], MOST_ROWS)
    units = sorted({unit for point in points for unit in point["gpus"]})
    is_job = "job" in document
    header = ["AFTER", "MEMORY", "CPU"] if is_job else ["AT"]
    for unit in units:
        header += [f"GPU {unit} MEMORY", f"GPU {unit}"]
    first = _of_job if is_job else _at
    rows = [[*first(point), *_of_gpus(point, units)] for point in points]
    return render(header, rows, this_screen())


def _of_job(point: Document) -> list[str]:
    memory, cores = amount(MEMORY, point["memory"]), amount(CPU, point["cpu"])
    return [_after(point["elapsed_s"]), memory, cores]


def _at(point: Document) -> list[str]:
    return [local(point["at"])]


def _of_gpus(point: Document, units: list[str]) -> list[str]:
    row = []
    for unit in units:
        gpu = point["gpus"].get(unit) or {}
        row.append(amount(GPU_MEMORY, gpu.get("memory")))
        row.append(amount(GPU_UTILIZATION, gpu.get("utilization")))
    return row


def _after(elapsed_s: float) -> str:
    return f"{elapsed_s:.1f}s" if elapsed_s < _BY_TENTHS_S else brief(elapsed_s)


def fewer(points: list[Document], most: int) -> list[Document]:
    """Return at most `most` points, evenly in time: of each part that of most memory.

    The first and the last part of a job are told like any other.
    """
    if len(points) <= most:
        return points
    first_s = points[0]["elapsed_s"]
    step_s = (points[-1]["elapsed_s"] - first_s) / most
    parts: dict[int, Document] = {}
    for point in points:
        part = min(most - 1, int((point["elapsed_s"] - first_s) / step_s))
        if part not in parts or point["memory"] > parts[part]["memory"]:
            parts[part] = point
    return list(parts.values())


COMMAND = Command(
    usage="[OPTIONS] JOB | gpu:UNIT",
    about=(
        "Print what a job used while it ran: memory, processor cores, and of each GPU "
        "memory and utilization. The last minutes are told by the second, what is "
        "older more coarsely; each line tells of the span of time before it, sizes as "
        "the most in it. Jobs that ran for less than half a second, and times "
        "when no daemon ran, are not measured. With gpu:0, print how that GPU was "
        "used, by jobs and strangers together."
    ),
    options=OPTIONS,
    examples=("grass usage 7", "grass usage --csv 7 > usage.csv", "grass usage gpu:0"),
    run=run,
)
