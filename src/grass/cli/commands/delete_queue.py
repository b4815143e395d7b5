"""`grass delete-queue`: delete a queue that has no unfinished jobs."""

from grass.cli.commands.create_queue import of_this_machine
from grass.cli.parsing.options import JSON, Command, one_word, read
from grass.cli.printing.streams import print_document, say, warn
from grass.client.client import Client
from grass.config import LOCAL

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Delete a queue."""
    values, rest = read(OPTIONS, words)
    name = one_word(rest, "the queue's name")
    with Client(broker=LOCAL) as client:
        done = of_this_machine(client, name, lambda: client.delete_queue(name))
    if values.has("json"):
        print_document({"queue": name, **done})
        return 0
    for warning in done["warnings"]:
        warn(warning)
    say(f"deleted queue {name}")
    return 0


COMMAND = Command(
    usage="[--json] NAME",
    about="Delete a queue, and the units that only it declared. It must have no jobs.",
    options=OPTIONS,
    examples=("grass delete-queue q1",),
    run=run,
)
