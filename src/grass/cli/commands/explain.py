"""`grass explain`: why a job waits, in numbers, or how it ended."""

from __future__ import annotations

import sys

from grass.cli.parsing.options import ANY, BROKER, JSON, Command, Values, chosen, read
from grass.cli.printing.explanation import explained
from grass.cli.printing.streams import print_document, printable
from grass.cli.printing.table import this_screen
from grass.client.client import Client
from grass.errors import UsageError

OPTIONS = (ANY, BROKER, JSON)


def run(words: list[str]) -> int:
    """Explain one job."""
    values, rest = read(OPTIONS, words)
    with Client(broker=values.broker) as client:
        document = client.explain(_job(client, values, rest))
    if values.has("json"):
        print_document(document)
    else:
        sys.stdout.write(printable(explained(document, this_screen())))
    return 0


def _job(client: Client, values: Values, words: list[str]) -> str:
    """Return a selector of the one job that the words mean together."""
    if not words:
        raise UsageError("the job is missing")
    if len(words) == 1:
        return words[0]
    jobs: list[int] = client.select(chosen(values, words))["jobs"]
    if len(jobs) != 1:
        raise UsageError(f"`{' '.join(words)}` selects {len(jobs)} jobs", "name one")
    return str(jobs[0])


COMMAND = Command(
    usage="[OPTIONS] SELECTOR...",
    about=(
        "Say why the one job that is selected waits: each thing that it needs with "
        "what there is, who holds the rest, why it does not start on each worker of "
        "its queue where there are several, and when it may start as far as earlier "
        "runs tell. Or say how it ended: exit code or signal, the last lines of its "
        "output, what it used."
    ),
    options=OPTIONS,
    examples=(
        "grass explain 7",
        "grass explain --json last",
        "grass explain @thesis last",
    ),
    run=run,
)
