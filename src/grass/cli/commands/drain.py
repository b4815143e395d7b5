"""`grass drain`: start nothing new on a unit, or on a whole worker."""

from __future__ import annotations

from grass.cli.parsing.options import (
    BROKER,
    JSON,
    Command,
    Option,
    Values,
    one_word,
    read,
)
from grass.cli.printing.streams import report_change
from grass.client.client import Client
from grass.config import LOCAL
from grass.errors import UsageError

WORKER = Option(
    "--worker", "WORKER", "the unit of this worker (default: this machine's)"
)
OPTIONS = (WORKER, BROKER, JSON)


def run(words: list[str]) -> int:
    """Drain a unit or a worker."""
    values, rest = read(OPTIONS, words)
    word = one_word(rest, "the unit or worker")
    if ":" in word:
        return _drain_unit(values, check_unit(word))
    if values.has("worker"):
        from shlex import quote

        raise UsageError("--worker goes with a unit", f"grass drain {quote(word)}")
    with Client(broker=values.broker) as client:
        done = client.drain_worker(word)
    return report_change(values, {"worker": word, **done}, *_said(f"worker {word}"))


def _drain_unit(values: Values, unit: str) -> int:
    with Client(broker=owner(values)) as client:
        done = client.drain(unit, values.text("worker"))
    return report_change(
        values, {"unit": unit, **done}, *_said(on_worker(unit, values))
    )


def on_worker(what: str, values: Values) -> str:
    """Add the worker's name to a text, if one was given."""
    return f"{what} of worker {values.text('worker')}" if values.has("worker") else what


def _said(what: str) -> tuple[str, str]:
    changed = f"{what} is drained: nothing new starts there"
    return changed, f"{what} was drained already"


def check_unit(word: str) -> str:
    """Refuse a word that cannot be a unit."""
    kind, colon, unit = word.partition(":")
    if not (kind and colon and unit):
        raise UsageError(f"`{word}` is not a unit", "write gpu:2")
    return word


def owner(values: Values) -> str | None:
    """Return the broker to call about a unit: by default this machine's daemon."""
    given = values.has("broker") or values.has("worker")
    return values.broker if given else LOCAL


COMMAND = Command(
    usage="[--worker WORKER] [--broker ADDRESS] [--json] KIND:UNIT | WORKER",
    about=(
        "Start nothing new on a unit of this machine, or on a whole worker; running "
        "jobs finish. `grass resume` takes it back into use."
    ),
    options=OPTIONS,
    examples=(
        "grass drain gpu:2",
        "grass drain gpu:2 --worker desk",
        "grass drain desk",
        "grass resume desk",
    ),
    run=run,
)
