"""`grass pause`: start no more jobs, of one queue or of all."""

from grass.cli.parsing.options import BROKER, JSON, Command, at_most, read
from grass.cli.printing.streams import print_document, say
from grass.client.client import Client

OPTIONS = (BROKER, JSON)


def run(words: list[str]) -> int:
    """Pause one queue, or everything."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 1)
    queue = rest[0] if rest else None
    with Client(broker=values.broker) as client:
        done = client.pause(queue)
    if values.has("json"):
        print_document({"queue": queue, **done})
        return 0
    what = f"queue {queue}" if queue else "grass"
    say(f"{what} is paused" if done["changed"] else f"{what} was paused already")
    return 0


COMMAND = Command(
    usage="[--broker ADDRESS] [--json] [QUEUE]",
    about="Start no more jobs, of one queue or of all. Running jobs go on.",
    options=OPTIONS,
    examples=("grass pause", "grass pause q1"),
    run=run,
)
