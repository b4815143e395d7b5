"""`grass remove`: forget jobs that have ended, with their output."""

from grass.cli.commands.verb_command import (
    OPTIONS,
    ChosenJobs,
    JobVerb,
    choose,
    print_ids,
    report,
)
from grass.cli.parsing.options import Command, Values, read
from grass.cli.printing.quantities import size_text
from grass.cli.printing.streams import counted, print_document, say, warn
from grass.cli.printing.wording import ENDED_STATES
from grass.client.client import Client
from grass.client.json_codec import Document

VERB = JobVerb("remove", "removed", ENDED_STATES, "no such job has ended")


def run(words: list[str]) -> int:
    """Forget the selected jobs."""
    values, select = read(OPTIONS, words)
    with Client(broker=values.broker) as client:
        choice = choose(client, VERB, values, select)
        if choice is None:
            return 0
        ids = _ids(client, choice) if values.has("quiet") else []
        done = client.remove(choice.select)
    _print(values, done, ids)
    return 0


def _ids(client: Client, choice: ChosenJobs) -> list[int]:
    """Return the ids of the jobs, while the daemon still knows them."""
    if choice.ids is None:
        found: list[int] = client.select(choice.select)["jobs"]
        return found
    return choice.ids


def _print(values: Values, done: Document, ids: list[int]) -> None:
    if values.has("json"):
        print_document(done)
        return
    if values.has("quiet"):
        print_ids(ids)
        return
    for warning in done.get("warnings", ()):
        warn(warning)
    if done["jobs"]:
        size = size_text(done["output_bytes"])
        say(f"removed {counted(done['jobs'], 'job')} with {size} of output")
    else:
        report(VERB, values, {"jobs": []})


COMMAND = Command(
    usage="[OPTIONS] SELECTOR...",
    about=(
        "Forget jobs that have ended, and remove their output. Files given with "
        "`enqueue --output` stay."
    ),
    options=OPTIONS,
    examples=("grass remove 7", "grass remove --yes state:cancelled"),
    run=run,
)
