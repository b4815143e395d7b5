"""`grass resume`: start jobs again, of one queue or of all, or on a drained unit."""

from __future__ import annotations

from grass.cli.drain import WORKER, check_unit
from grass.cli.options import JSON, Command, Values, at_most, read
from grass.cli.printing import print_document, say, warn
from grass.client.client import Client
from grass.errors import UsageError

OPTIONS = (WORKER, JSON)


def run(words: list[str]) -> int:
    """Resume one queue, one unit, or everything."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 1)
    word = rest[0] if rest else None
    if word is not None and ":" in word:
        return _resume_unit(values, check_unit(word))
    if values.has("worker"):
        raise UsageError("--worker goes with a unit", "grass resume gpu:2")
    return _resume_queue(values, word)


def _resume_queue(values: Values, queue: str | None) -> int:
    with Client() as client:
        done = client.resume(queue)
    if values.has("json"):
        print_document({"queue": queue, **done})
        return 0
    what = f"queue {queue}" if queue else "grass"
    say(f"{what} is running again" if done["changed"] else f"{what} was not paused")
    for warning in done["warnings"]:
        warn(warning)
    return 0


def _resume_unit(values: Values, unit: str) -> int:
    with Client() as client:
        done = client.resume(unit=unit, worker=values.text("worker"))
    if values.has("json"):
        print_document({"unit": unit, **done})
        return 0
    say(f"{unit} is in use again" if done["changed"] else f"{unit} was not drained")
    return 0


COMMAND = Command(
    usage="[--worker NAME] [--json] [QUEUE | KIND:UNIT]",
    about="Start jobs again: of one queue, on one drained unit, or of all queues.",
    options=OPTIONS,
    examples=("grass resume", "grass resume q1", "grass resume gpu:2"),
    run=run,
)
