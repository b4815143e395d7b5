"""`grass show`: workers, queues and jobs as tables, or all of it as JSON."""

from collections.abc import Sequence

from grass.cli import summary
from grass.cli.options import JSON, Command, Option, at_most, read
from grass.cli.printing import print_document
from grass.cli.table import render, show, this_screen
from grass.client.client import Client
from grass.client.wire import Document

OPTIONS = (
    Option("--all", about="every job, not only active and recent ones"),
    JSON,
)


def run(words: list[str]) -> int:
    """Print what there is."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 1)
    queue = rest[0] if rest else None
    with Client() as client:
        overview = client.overview(queue)
        if values.has("all"):
            overview["jobs"] = list(client.jobs(queue=queue))
    if values.has("json"):
        print_document(overview)
    else:
        _print_tables(overview, whole=queue is None)
    return 0


def _print_tables(overview: Document, *, whole: bool) -> None:
    screen = this_screen()
    jobs = sorted(overview["jobs"], key=lambda job: int(job["id"]))
    queues = summary.queue_rows(overview["queues"])
    tables: list[tuple[Sequence[str], list[list[str]]]] = [(summary.QUEUES, queues)]
    if whole:
        workers = summary.worker_rows(overview["workers"])
        tables.insert(0, (summary.WORKERS, workers))
    if jobs:
        tables.append((summary.JOBS, summary.job_rows(jobs, summary.utc_now())))
    for header, rows in tables:
        show(render(header, rows, screen, summary.TINTS) + "\n")
    show(summary.summary(overview["daemon"]) + "\n")


COMMAND = Command(
    usage="[QUEUE] [--all] [--json]",
    about=(
        "Show workers (what is free of each unit, and whether it was found or "
        "declared), queues, and jobs: active and recent ones, or all. With a QUEUE, "
        "only that queue and its jobs."
    ),
    options=OPTIONS,
    examples=("grass show", "grass show q1 --all", "grass show --json"),
    run=run,
)
