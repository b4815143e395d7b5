"""`grass resume`: start jobs again."""

from grass.cli.options import JSON, Command, at_most, read
from grass.cli.printing import print_document, say
from grass.client.client import Client

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Resume one queue, or everything."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 1)
    queue = rest[0] if rest else None
    with Client() as client:
        done = client.resume(queue)
    if values.has("json"):
        print_document({"queue": queue, **done})
        return 0
    what = f"queue {queue}" if queue else "grass"
    say(f"{what} is running again" if done["changed"] else f"{what} was not paused")
    return 0


COMMAND = Command(
    usage="[--json] [QUEUE]",
    about="Start jobs again, of one queue or of all.",
    options=OPTIONS,
    examples=("grass resume", "grass resume q1"),
    run=run,
)
