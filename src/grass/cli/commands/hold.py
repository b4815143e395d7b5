"""`grass hold`: keep jobs from starting."""

from grass.cli.commands.verb_command import OPTIONS, JobVerb, do
from grass.cli.parsing.options import Command
from grass.client.client import Client

VERB = JobVerb("hold", "held", ("waiting", "queued"), "no such job waits to start")


def run(words: list[str]) -> int:
    """Keep jobs from starting."""
    return do(VERB, words, Client.hold)


COMMAND = Command(
    usage="[OPTIONS] SELECTOR...",
    about="Keep jobs from starting until they are released. Running jobs go on.",
    options=OPTIONS,
    examples=(
        "grass hold 7",
        "grass hold queue:q1",
        "grass hold --yes state:queued",
    ),
    run=run,
)
