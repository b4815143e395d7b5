"""`grass explain`: why a job waits, in numbers, or how it ended."""

from __future__ import annotations

import sys

from grass.cli.parsing.options import BROKER, JSON, Command, one_word, read
from grass.cli.printing.explanation import explained
from grass.cli.printing.streams import print_document, printable
from grass.cli.printing.table import this_screen
from grass.client.client import Client

OPTIONS = (BROKER, JSON)


def run(words: list[str]) -> int:
    """Explain one job."""
    values, rest = read(OPTIONS, words)
    with Client(broker=values.broker) as client:
        document = client.explain(one_word(rest, "the job"))
    if values.has("json"):
        print_document(document)
    else:
        sys.stdout.write(printable(explained(document, this_screen())))
    return 0


COMMAND = Command(
    usage="[--broker ADDRESS] [--json] JOB",
    about=(
        "Say why a job waits: each thing that it needs with what there is, who holds "
        "the rest, why it does not start on each worker of its queue where there are "
        "several, and when it may start as far as earlier runs tell. Or say how it "
        "ended: exit code or signal, the last lines of its output, what it used."
    ),
    options=OPTIONS,
    examples=("grass explain 7", "grass explain --json last"),
    run=run,
)
