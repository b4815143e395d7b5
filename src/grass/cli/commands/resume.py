"""`grass resume`: start jobs again, of a queue or of all, on a drained unit or worker.

A word without a colon is a queue's name, or else a worker's.
"""

from grass.cli.commands.drain import WORKER, check_unit, on_worker, owner
from grass.cli.parsing.options import BROKER, JSON, Command, Values, at_most, read
from grass.cli.printing.streams import report_change
from grass.client.client import Client
from grass.client.json_codec import Document
from grass.errors import NotFound, UsageError

OPTIONS = (WORKER, BROKER, JSON)


def run(words: list[str]) -> int:
    """Resume one queue, one unit, one worker, or everything."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 1)
    word = rest[0] if rest else None
    if word is not None and ":" in word:
        return _resume_unit(values, check_unit(word))
    named = values.text("worker")
    with Client(broker=values.broker) as client:
        if named is None:
            return _resume_queue(client, values, word)
        if word is not None:
            raise UsageError("--worker goes with a unit", "grass resume gpu:2")
        return _report_worker(values, named, client.drain_worker(named, on=False))


def _resume_queue(client: Client, values: Values, queue: str | None) -> int:
    try:
        done = client.resume(queue)
    except NotFound:
        if queue is None:
            raise
        return _resume_worker(client, values, queue)
    what = f"queue {queue}" if queue else "grass"
    said = f"{what} is running again", f"{what} was not paused"
    return report_change(values, {"queue": queue, **done}, *said)


def _resume_worker(client: Client, values: Values, name: str) -> int:
    try:
        done = client.drain_worker(name, on=False)
    except NotFound:
        raise NotFound(
            f"there is no queue or worker `{name}`",
            "`grass show --queues` and `grass workers` list them",
        ) from None
    return _report_worker(values, name, done)


def _report_worker(values: Values, name: str, done: Document) -> int:
    said = f"worker {name} is in use again", f"worker {name} was not drained"
    return report_change(values, {"worker": name, **done}, *said)


def _resume_unit(values: Values, unit: str) -> int:
    with Client(broker=owner(values)) as client:
        done = client.resume(unit=unit, worker=values.text("worker"))
    what = on_worker(unit, values)
    changed = f"{what} is in use again"
    if done.get("warnings"):
        changed = f"the fault of {what} is acknowledged"
    said = changed, f"{what} was not drained"
    return report_change(values, {"unit": unit, **done}, *said)


COMMAND = Command(
    usage=(
        "[--worker WORKER] [--broker ADDRESS] [--json] [QUEUE | KIND:UNIT | WORKER]"
    ),
    about=(
        "Start jobs again: of one queue, on one drained unit or worker, or of all "
        "queues. Of a GPU with a fault it acknowledges the fault: the GPU is used "
        "again when a check finds that it works. Where a queue has a worker's name, "
        "the queue is meant; `--worker` alone names the worker."
    ),
    options=OPTIONS,
    examples=(
        "grass resume",
        "grass resume q1",
        "grass resume gpu:2",
        "grass resume desk",
    ),
    run=run,
)
