"""`grass suspend`: stop running jobs where they are."""

from grass.cli.commands.verb_command import OPTIONS, JobVerb, do
from grass.cli.parsing.options import Command
from grass.client.client import Client

VERB = JobVerb("suspend", "suspended", ("running",), "no such job is running")


def run(words: list[str]) -> int:
    """Stop running jobs where they are."""
    return do(VERB, words, Client.suspend)


COMMAND = Command(
    usage="[OPTIONS] SELECTOR...",
    about=(
        "Stop the processes of running jobs where they are (SIGSTOP). They keep "
        "their units and their memory until `grass continue`."
    ),
    options=OPTIONS,
    examples=(
        "grass suspend 7",
        "grass suspend --yes @sweep",
    ),
    run=run,
)
