"""`grass workers foreign|end|keep`: attempts that the database knows nothing of."""

from __future__ import annotations

from grass.cli.commands.verb_command import confirm
from grass.cli.printing.quantities import ago, utc_now
from grass.cli.printing.streams import counted, print_document, report_change, say
from grass.cli.printing.table import render, show, this_screen
from grass.client.client import Client
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    from grass.cli.parsing.options import Values
    from grass.client.json_codec import Document

ALL = ["all"]
HEADER = ("WORKER", "ATTEMPT", "NAME", "PID", "STARTED", "UNITS", "STATE")


def run(values: Values, verb: str, *words: str) -> int:
    """List foreign attempts, end some, or keep some."""
    if verb == "foreign":
        if words:
            raise UsageError(f"`{words[0]}` is too much", "grass workers foreign")
        return _list(values)
    if len(words) < len(("worker", "attempt")):
        raise UsageError(
            "name a worker and its attempts, or `all`", f"grass workers {verb} desk all"
        )
    return _decide(values, verb, words[0], list(words[1:]))


def _list(values: Values) -> int:
    with Client(broker=values.broker) as client:
        workers = client.workers()["workers"]
    found = [
        {"worker": worker["name"], **one}
        for worker in workers
        for one in worker.get("foreign") or ()
    ]
    if values.has("json"):
        print_document({"foreign": found})
    elif found:
        now = utc_now()
        show(render(HEADER, [_row(one, now) for one in found], this_screen()))
    else:
        say("every attempt that runs is in the database")
    return 0


def _row(one: Document, now: datetime) -> list[str]:
    units = (one["units"] or {}).items()
    return [
        one["worker"],
        one["attempt"],
        one["name"] or "",
        str(one["pid"] or ""),
        ago(one["started_at"], now),
        " ".join(f"{kind}:{','.join(named)}" for kind, named in units),
        _state(one),
    ]


def _state(one: Document) -> str:
    if one["stopping"]:
        return "stopping"
    if not one["running"]:
        return "recalled"
    return "kept" if one["kept"] else "undecided"


def _confirmed(client: Client, values: Values, worker: str) -> list[str]:
    """Return the attempts of this cluster that `all` are, once they are confirmed."""
    workers = client.workers()["workers"]
    own = [
        one["attempt"]
        for found in workers
        if worker in (found["name"], found["id"])
        for one in found.get("foreign") or ()
        if one["attempt"].count(".") == 1
    ]
    if not own:
        # The broker refuses an unknown worker.
        return ALL
    what = f"end {counted(len(own), 'foreign attempt')} on {worker}"
    confirm(what, values, look="`grass workers foreign`")
    return own


def _decide(values: Values, verb: str, worker: str, names: list[str]) -> int:
    with Client(broker=values.broker) as client:
        attempts = names
        if verb == "end" and names == ALL:
            attempts = _confirmed(client, values, worker)
        act = client.end_foreign if verb == "end" else client.keep_foreign
        done = act(worker, attempts)
    which = "all foreign attempts" if names == ALL else " ".join(names)
    document = {"worker": worker, "attempts": attempts, **done}
    if verb == "end":
        said = f"{which} on worker {worker}: SIGTERM is sent, SIGKILL after the grace"
        return report_change(values, document, said, said)
    kept = f"{which} on worker {worker}: kept until they end"
    return report_change(values, document, kept, f"{which}: kept already")
