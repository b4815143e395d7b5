"""`grass pool`: have a cluster's own scheduler start workers."""

from __future__ import annotations

from grass.cli.parsing.options import (
    BROKER,
    JSON,
    Command,
    Values,
    at_most,
    one_word,
    read,
    refuse_options_of,
    subcommand,
)
from grass.cli.parsing.pool_options import ADDING, pool_body
from grass.cli.printing.quantities import in_local_time
from grass.cli.printing.streams import print_document, say, warn
from grass.client.client import Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from grass.client.json_codec import Document

OPTIONS = (*ADDING, BROKER, JSON)
HEADER = ("POOL", "ENGINE", "WORKERS", "EACH HAS", "STATE")
PILOT_HEADER = ("POOL", "JOB THERE", "STAGE", "SAYS", "WORKER")


def run(words: list[str]) -> int:
    """Run the subcommand that the first word names."""
    values, rest = read(OPTIONS, words)
    known = {
        "add": _add,
        "show": _show,
        "pause": _pause,
        "resume": _resume,
        "remove": _remove,
        "logs": _logs,
    }
    name, handler = subcommand("pool", known, rest, default="show")
    if name != "add":
        refuse_options_of("pool add", ADDING, values)
    return handler(values, rest[1:])


def _add(values: Values, rest: list[str]) -> int:
    name = one_word(rest, "the pool")
    with Client(broker=values.broker) as client:
        done = client.add_pool(pool_body(values, name))
    if values.has("json"):
        print_document({"pool": name, **done})
        return 0
    say(": ".join((f"added {name}", *done["warnings"])))
    return 0


def _show(values: Values, rest: list[str]) -> int:
    at_most(rest, 0)
    with Client(broker=values.broker) as client:
        document = client.pools()
    if values.has("json"):
        print_document(document)
        return 0
    from grass.cli.printing.table import render, show, this_screen

    pools = document["pools"]
    show(render(HEADER, pool_rows(pools), this_screen()))
    if any(pool["pilots"] for pool in pools):
        say("")
        show(render(PILOT_HEADER, pilot_rows(pools), this_screen()))
    return 0


def pool_rows(pools: Iterable[Document]) -> list[list[str]]:
    """Return a row for each pool."""
    return [
        [
            pool["name"],
            pool["engine"],
            f"{sum(one['connected'] for one in pool['pilots'])}/{pool['max_workers']}",
            _shape(pool),
            _state(pool),
        ]
        for pool in pools
    ]


def pilot_rows(pools: Iterable[Document]) -> list[list[str]]:
    """Return a row for each pilot, in the words of its engine."""
    return [
        [
            pool["name"],
            pilot["engine_id"],
            pilot["stage"],
            says(pilot),
            pilot["worker"] or "",
        ]
        for pool in pools
        for pilot in pool["pilots"]
    ]


def says(pilot: Document) -> str:
    """Return what an engine says of a pilot, or what the broker knows of it."""
    start = pilot["expected_start"]
    parts = (pilot["word"], pilot["reason"], pilot["place"])
    text = " ".join(filter(None, parts)) or in_local_time(pilot["says"])
    return f"{text}, estimated start {start}" if start else text


def _shape(pool: Document) -> str:
    parts = [f"cpu {pool['cpus']}"]
    parts += [f"gpu {pool['gpus']}"] if pool["gpus"] else []
    parts += [f"ram {pool['memory_mib']}M"] if pool["memory_mib"] else []
    return ", ".join(parts)


def _state(pool: Document) -> str:
    state = "leaving" if pool["removing"] else "paused" if pool["paused"] else "asks"
    return f"{state}: {in_local_time(pool['words'])}" if pool["words"] else state


def _pause(values: Values, rest: list[str]) -> int:
    name = one_word(rest, "the pool")
    with Client(broker=values.broker) as client:
        done = client.pause_pool(name)
    return _report(values, name, done, "asks for no more workers")


def _resume(values: Values, rest: list[str]) -> int:
    name = one_word(rest, "the pool")
    with Client(broker=values.broker) as client:
        done = client.resume_pool(name)
    return _report(values, name, done, "asks for workers again")


def _remove(values: Values, rest: list[str]) -> int:
    name = one_word(rest, "the pool")
    with Client(broker=values.broker) as client:
        done = client.remove_pool(name)
    return _report(values, name, done, "is removed with its last worker")


def _logs(values: Values, rest: list[str]) -> int:
    name = one_word(rest, "the pool")
    with Client(broker=values.broker) as client:
        document = client.pool_logs(name)
    if values.has("json"):
        print_document(document)
        return 0
    for one in document["pilots"]:
        pilot = one["pilot"]
        about = "gone" if pilot is None else _about(pilot)
        say(f"== {one['mark']}: {about}")
        for line in one["text"].splitlines() or ["(it has printed nothing)"]:
            say(line)
    if document["words"]:
        say(f"== last refusal: {document['words']}")
    return 0


def _about(pilot: Document) -> str:
    parts = (pilot["engine_id"], says(pilot), pilot["worker"])
    return ", ".join(filter(None, parts)) or str(pilot["stage"])


def _report(values: Values, name: str, done: Document, what: str) -> int:
    if values.has("json"):
        print_document({"pool": name, **done})
        return 0
    for warning in done["warnings"]:
        warn(warning)
    say(f"{name} {what}")
    return 0


COMMAND = Command(
    usage=(
        "[OPTIONS] [--broker ADDRESS] [--json] "
        "[show | add NAME | logs NAME | pause NAME | resume NAME | remove NAME]"
    ),
    about=(
        "Have a cluster's scheduler start workers while jobs wait that no worker has "
        "room for, and end them when they are idle. `add` asks it at once whether it "
        "would take such a worker. `show` tells of each in the scheduler's words. "
        "After ten refusals in a row a pool is paused. `enqueue --pool NAME` is for "
        "jobs of one pool alone. A file may hold any of these options, as "
        "`max_workers = 8`, and the commands of another scheduler; options that are "
        "given win."
    ),
    options=OPTIONS,
    examples=(
        "grass pool add uni --slurm --partition gpu --gpus 1 --time 4h --max-workers 8",
        "grass pool add ray --ray http://head:8265 --gpus 1 --max-workers 4",
        "grass pool add pbs --template pbs.toml",
        "grass enqueue --pool uni -g 1 -- python train.py",
        "grass pool show",
        "grass pool resume uni",
    ),
    run=run,
)
