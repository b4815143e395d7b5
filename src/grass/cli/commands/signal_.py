"""`grass signal`: send one signal to the processes of running jobs."""

from grass.cli.commands.verb_command import OPTIONS, JobVerb, choose, report
from grass.cli.parsing.options import Command, read
from grass.client.client import Client
from grass.errors import UsageError

VERB = JobVerb("signal", "signalled", ("running",), "no such job is running")


def run(words: list[str]) -> int:
    """Send a signal to the selected jobs."""
    values, names = read(OPTIONS, words)
    if not names:
        raise UsageError("the signal is missing", "grass signal USR1 7")
    from grass.model.jobs.signals import check_sendable, signal_number

    number = check_sendable(signal_number(names[0]))
    with Client(broker=values.broker) as client:
        choice = choose(client, VERB, values, names[1:])
        if choice is not None:
            report(VERB, values, client.signal(choice.select, number))
    return 0


COMMAND = Command(
    usage="[OPTIONS] SIGNAL SELECTOR...",
    about=(
        "Send one signal to running jobs: USR1, SIGUSR1 or 10. Of each job it goes to "
        "the processes that handle it, or to all where none does. Jobs are ended by "
        "`grass cancel`, which makes sure of it, and stopped for a while by `grass "
        "suspend`."
    ),
    options=OPTIONS,
    examples=(
        "grass signal USR1 7",
        "grass signal --yes HUP @sweep",
    ),
    run=run,
)
