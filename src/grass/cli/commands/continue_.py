"""`grass continue`: continue suspended jobs."""

from grass.cli.commands.verb_command import OPTIONS, JobVerb, do
from grass.cli.parsing.options import Command
from grass.client.client import Client

VERB = JobVerb("continue", "continued", ("running",), "no such job is suspended")


def run(words: list[str]) -> int:
    """Continue suspended jobs."""
    return do(VERB, words, Client.continue_)


COMMAND = Command(
    usage="[OPTIONS] SELECTOR...",
    about="Let suspended jobs go on (SIGCONT).",
    options=OPTIONS,
    examples=(
        "grass continue 7",
        "grass continue --yes @sweep",
    ),
    run=run,
)
