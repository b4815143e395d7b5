"""`grass release`: release held jobs."""

from grass.cli.commands.verb_command import OPTIONS, JobVerb, do
from grass.cli.parsing.options import Command
from grass.client.client import Client

VERB = JobVerb("release", "released", ("held",), "no such job is held")


def run(words: list[str]) -> int:
    """Release held jobs."""
    return do(VERB, words, Client.release)


COMMAND = Command(
    usage="[OPTIONS] SELECTOR...",
    about="Let held jobs start when their turn comes.",
    options=OPTIONS,
    examples=(
        "grass release 7",
        "grass release --yes state:held",
    ),
    run=run,
)
