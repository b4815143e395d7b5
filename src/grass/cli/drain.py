"""`grass drain`: start nothing new on a unit."""

from grass.cli.options import JSON, Command, Option, one_word, read
from grass.cli.printing import print_document, say, warn
from grass.client.client import Client
from grass.errors import UsageError

WORKER = Option("--worker", "NAME", "the unit of this worker (default: the daemon's)")
OPTIONS = (WORKER, JSON)


def run(words: list[str]) -> int:
    """Drain a unit."""
    values, rest = read(OPTIONS, words)
    unit = check_unit(one_word(rest, "the unit"))
    with Client() as client:
        done = client.drain(unit, values.text("worker"))
    if values.has("json"):
        print_document({"unit": unit, **done})
        return 0
    for warning in done["warnings"]:
        warn(warning)
    changed = f"{unit} is drained: nothing new starts there"
    say(changed if done["changed"] else f"{unit} was drained already")
    return 0


def check_unit(word: str) -> str:
    """Refuse what cannot be a unit."""
    kind, colon, unit = word.partition(":")
    if not (kind and colon and unit):
        raise UsageError(f"`{word}` is not a unit", "write gpu:2")
    return word


COMMAND = Command(
    usage="[--worker NAME] [--json] KIND:UNIT",
    about=(
        "Start nothing new on a unit; running jobs finish. `grass resume` takes it "
        "back into use."
    ),
    options=OPTIONS,
    examples=("grass drain gpu:2", "grass resume gpu:2"),
    run=run,
)
