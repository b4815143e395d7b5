"""`grass pause`: start no more jobs, of one queue or of all."""

from grass.cli.parsing.options import BROKER, JSON, Command, at_most, read
from grass.cli.printing.streams import report_change
from grass.client.client import Client

OPTIONS = (BROKER, JSON)


def run(words: list[str]) -> int:
    """Pause one queue, or everything."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 1)
    queue = rest[0] if rest else None
    with Client(broker=values.broker) as client:
        done = client.pause(queue)
    what = f"queue {queue}" if queue else "grass"
    said = f"{what} is paused", f"{what} was paused already"
    return report_change(values, {"queue": queue, **done}, *said)


COMMAND = Command(
    usage="[--broker ADDRESS] [--json] [QUEUE]",
    about="Start no more jobs, of one queue or of all. Running jobs go on.",
    options=OPTIONS,
    examples=("grass pause", "grass pause q1"),
    run=run,
)
