"""`grass timeline`: who held the machine's units, and for how many hours."""

from __future__ import annotations

import sys

from grass.cli.parsing.options import BROKER, JSON, Command, Option, at_most, read
from grass.cli.printing.quantities import local
from grass.cli.printing.streams import print_document, printable, safe, warn
from grass.cli.printing.table import render, this_screen
from grass.cli.printing.wording import owner
from grass.client.client import Client
from grass.errors import UsageError
from grass.model.durations import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document

OPTIONS = (
    Option("--since", "TIME", "how far back to look: 12h, 7d, 30d (default: 7d)"),
    Option("--by", "WHAT", "owner, the default, or unit"),
    Option("--worker", "NAME", "only this worker's units"),
    BROKER,
    JSON,
)
USUAL = "7d"


def run(words: list[str]) -> int:
    """Print who held what."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    by = values.text("by") or "owner"
    if by not in ("owner", "unit"):
        raise UsageError(f"--by `{by}` is not known", "use owner or unit")
    since_s = seconds(values.text("since") or USUAL)
    with Client(broker=values.broker) as client:
        document = client.timeline(since_s, worker=values.text("worker"))
    if values.has("json"):
        print_document(document)
        return 0
    table = _by_owner(document) if by == "owner" else _by_unit(document, since_s)
    sys.stdout.write(printable(table))
    if document["complete_from"] is not None:
        warn(f"jobs that ended before {local(document['complete_from'])} do not count")
    return 0


def _by_owner(document: Document) -> str:
    held: dict[str, dict[str, float]] = {}
    for one in document["totals"]:
        kinds = held.setdefault(one["owner"], {"gpu": 0.0, "cpu": 0.0})
        kinds[one["kind"]] += one["hours"]
    most_first = sorted(held.items(), key=lambda item: tuple(item[1].values()))[::-1]
    rows = [
        [safe(owner(who)), _hours(kinds["gpu"]), _hours(kinds["cpu"])]
        for who, kinds in most_first
    ]
    return render(["OWNER", "GPU HOURS", "CPU HOURS"], rows, this_screen())


def _by_unit(document: Document, since_s: float) -> str:
    held: dict[tuple[str, str, str], dict[str, float]] = {}
    for one in document["totals"]:
        place = one["worker"], one["kind"], one["unit"]
        held.setdefault(place, {})[one["owner"]] = one["hours"]
    capacities = {
        (one["worker"], one["kind"], one["unit"]): one["capacity"]
        for one in document["lanes"]
    }
    rows = [
        _unit_row(place, held.get(place, {}), capacities.get(place), since_s)
        for place in {**capacities, **held}
    ]
    return render(["WORKER", "UNIT", "HOURS", "USED", "BY"], rows, this_screen())


def _unit_row(
    place: tuple[str, str, str],
    owners: dict[str, float],
    capacity: float | None,
    since_s: float,
) -> list[str]:
    worker, kind, unit = place
    total = sum(owners.values())
    used = f"{100 * total / (capacity * since_s / 3600):.0f}%" if capacity else ""
    most_first = sorted(owners, key=lambda one: -owners[one])
    by = ", ".join(f"{safe(owner(one))} {_hours(owners[one])}" for one in most_first)
    return [safe(worker), f"{kind}:{unit}" if unit else kind, _hours(total), used, by]


def _hours(hours: float) -> str:
    return f"{hours:.2f}" if hours < 10 else f"{hours:.1f}"


COMMAND = Command(
    usage="[OPTIONS]",
    about=(
        "Print who held GPUs and cores, for how many hours: half of a GPU for two "
        "hours is one hour of it. What is held counts, used or not; `grass usage` "
        "tells what a job used. Attempts of a job that waits to run again count once "
        "it has. With --json there are also the attempts themselves, the longest "
        "ones, by unit and time."
    ),
    options=OPTIONS,
    examples=(
        "grass timeline",
        "grass timeline --since 30d --by unit",
        "grass timeline --since 1d --json",
    ),
    run=run,
)
