"""`grass prune`: forget jobs that ended long ago, with their output."""

from grass.cli.commands.verb_command import YES, confirm
from grass.cli.parsing.options import (
    BROKER,
    JSON,
    Command,
    Option,
    Values,
    at_most,
    read,
)
from grass.cli.printing.quantities import size_text
from grass.cli.printing.streams import counted, print_document, say
from grass.client.client import Client
from grass.model.durations import seconds

OPTIONS = (
    Option(
        "--older",
        "TIME",
        "ended longer ago than this: 12h, 30d (default: what the configuration keeps, "
        "else 30d)",
    ),
    YES,
    Option("--dry-run", about="only say what would be forgotten"),
    BROKER,
    JSON,
)
DEFAULT_AGE = "30d"
RETENTION = "retention.keep"


def run(words: list[str]) -> int:
    """Forget old jobs."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    older = values.text("older")
    older_s = None if older is None else seconds(older)
    dry_run = values.has("dry_run")
    with Client(broker=values.broker) as client:
        age_s = _retention_s(client) if older_s is None else older_s
        if not dry_run and not values.has("yes"):
            _ask(client, age_s, values)
        done = client.prune(age_s, dry_run=dry_run)
    if values.has("json"):
        print_document({**done, "dry_run": dry_run})
        return 0
    did = "would forget" if dry_run else "forgot"
    size = size_text(done["output_bytes"])
    say(f"{did} {counted(done['jobs'], 'job')} with {size} of output")
    return 0


def _ask(client: Client, age_s: float, values: Values) -> None:
    """Count the jobs, and ask for confirmation if there are several."""
    many = client.prune(age_s, dry_run=True)["jobs"]
    if many > 1:
        confirm(f"forget {counted(many, 'job')}", values)


def _retention_s(client: Client) -> float:
    """Return how long the daemon's configuration keeps jobs."""
    for setting in client.config()["settings"]:
        value = setting["value"]
        if setting["name"] == RETENTION and value is not None:
            return seconds(value) if isinstance(value, str) else float(value)
    return seconds(DEFAULT_AGE)


COMMAND = Command(
    usage="[OPTIONS]",
    about=(
        "Forget jobs that ended long ago and remove their output. Files given with "
        "`enqueue --output` stay."
    ),
    options=OPTIONS,
    examples=("grass prune --yes", "grass prune --older 7d --dry-run"),
    run=run,
)
