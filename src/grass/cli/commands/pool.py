"""`grass pool`: have a cluster's own scheduler start workers."""

from __future__ import annotations

import math
import os

from grass.cli.parsing.options import (
    BROKER,
    JSON,
    Command,
    Option,
    Values,
    at_most,
    one_word,
    read,
    refuse_options_of,
    subcommand,
)
from grass.cli.printing.streams import print_document, say
from grass.client.client import Client
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from grass.client.json_codec import Document

ADDING = (
    Option("--slurm", about="ask Slurm, with `sbatch`"),
    Option("--max-workers", "N", "never have more workers of it than this"),
    Option("--time", "TIME", "how long Slurm lets a worker run"),
    Option("--idle", "TIME", "a worker without a job leaves after this (5m)"),
    Option("--partition", "NAME", "the partition of Slurm to ask in"),
    Option("--cpus", "N", "cores of each worker (1)"),
    Option("--gpus", "N", "GPUs of each worker (0)"),
    Option("--memory", "SIZE", "memory of each worker (what the site gives)"),
    Option("--option", "OPTION", "an option of the site's own; repeatable"),
    Option("--setup", "LINE", "a shell line before the worker starts; repeatable"),
    Option("--omit", "OPTION", "an option that the site refuses; repeatable"),
    Option("--submit-prefix", "WORDS", "run `sbatch` behind these: 'ssh login1'"),
    Option("--folder", "FOLDER", "a folder that workers see too (in your home)"),
)
OPTIONS = (*ADDING, BROKER, JSON)
HEADER = ("POOL", "ENGINE", "WORKERS", "EACH HAS", "STATE")
PILOT_HEADER = ("POOL", "JOB THERE", "STAGE", "SAYS", "WORKER")
DEFAULT_IDLE = "5m"


def run(words: list[str]) -> int:
    """Run the subcommand that the first word names."""
    values, rest = read(OPTIONS, words)
    known = {
        "add": _add,
        "show": _show,
        "pause": _pause,
        "resume": _resume,
        "remove": _remove,
    }
    name, handler = subcommand("pool", known, rest, default="show")
    if name != "add":
        refuse_options_of("pool add", ADDING, values)
    return handler(values, rest[1:])


def _add(values: Values, rest: list[str]) -> int:
    name = one_word(rest, "the pool")
    with Client(broker=values.broker) as client:
        done = client.add_pool(_body(values, name))
    if values.has("json"):
        print_document({"pool": name, **done})
        return 0
    say(": ".join((f"added {name}", *done["warnings"])))
    return 0


def _body(values: Values, name: str) -> Document:
    import shlex

    from grass.model.durations import seconds

    if not values.has("slurm"):
        raise UsageError("say which engine the pool is of", "--slurm")
    most, time = values.whole_number("max_workers"), values.text("time")
    if most is None or time is None:
        raise UsageError("a pool needs --max-workers N and --time TIME")
    partition = values.text("partition")
    options = [] if partition is None else [f"--partition={partition}"]
    folder = values.text("folder")
    return {
        "name": name,
        "engine": "slurm",
        "max_workers": most,
        "idle_s": seconds(values.text("idle") or DEFAULT_IDLE),
        "time_limit_s": seconds(time),
        "cpus": values.whole_number("cpus") or 1,
        "gpus": values.whole_number("gpus") or 0,
        "memory_mib": _memory_mib(values),
        "options": options + values.all("option"),
        "setup": values.all("setup"),
        "omitted": values.all("omit"),
        "submit_prefix": shlex.split(values.text("submit_prefix") or ""),
        "folder": "" if folder is None else os.path.abspath(folder),
    }


def _memory_mib(values: Values) -> int | None:
    text = values.text("memory")
    if text is None:
        return None
    from grass.model.amount_text import WHOLE
    from grass.model.resources import request_from

    ((_, amount),) = request_from(f'{{ram:"{text}"}}')
    return math.ceil(amount * 1024 / WHOLE)


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
    """Return what an engine says of a pilot."""
    start = pilot["expected_start"]
    parts = (pilot["word"], pilot["reason"], pilot["place"])
    text = " ".join(filter(None, parts))
    return f"{text}, estimated start {start}" if start else text


def _shape(pool: Document) -> str:
    parts = [f"cpu {pool['cpus']}"]
    parts += [f"gpu {pool['gpus']}"] if pool["gpus"] else []
    parts += [f"ram {pool['memory_mib']}M"] if pool["memory_mib"] else []
    return ", ".join(parts)


def _state(pool: Document) -> str:
    state = "leaving" if pool["removing"] else "paused" if pool["paused"] else "asks"
    return f"{state}: {pool['words']}" if pool["words"] else state


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


def _report(values: Values, name: str, done: Document, what: str) -> int:
    if values.has("json"):
        print_document({"pool": name, **done})
    else:
        say(f"{name} {what}")
    return 0


COMMAND = Command(
    usage=(
        "[OPTIONS] [--broker ADDRESS] [--json] "
        "[show | add NAME | pause NAME | resume NAME | remove NAME]"
    ),
    about=(
        "Have Slurm start workers while jobs wait that no worker has room for, and end "
        "them when they are idle. `add` asks Slurm at once whether it would take such "
        "a worker. `show` tells of each in Slurm's words. After ten refusals in a row "
        "a pool is paused. `enqueue --pool NAME` is for jobs of one pool alone."
    ),
    options=OPTIONS,
    examples=(
        "grass pool add uni --slurm --partition gpu --gpus 1 --time 4h --max-workers 8",
        "grass enqueue --pool uni -g 1 -- python train.py",
        "grass pool show",
        "grass pool resume uni",
    ),
    run=run,
)
