"""`grass up`: ask a pool for workers by hand, as with `grain up`."""

from __future__ import annotations

import os

from grass.cli.commands.pool import PILOT_HEADER, pilot_rows
from grass.cli.parsing.options import (
    BROKER,
    JSON,
    Command,
    Option,
    Values,
    at_most,
    one_word,
    read,
)
from grass.cli.printing.streams import counted, print_document, say
from grass.client.client import Client
from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.json_codec import Document

OPTIONS = (
    Option("-n, --count", "N", "how many workers to ask for (1)"),
    Option("-c, --config", "FILE", "Grain's file ($GRAIN_CONFIG, else grain.toml)"),
    Option(
        "--dry", about="print what the scheduler would be given, and ask for nothing"
    ),
    BROKER,
    JSON,
)

_GRAIN_POOL = "grain"


def run(words: list[str]) -> int:
    """Ask for workers, list them, or send one away."""
    at = words.index("--") if "--" in words else len(words)
    values, rest = read(OPTIONS, words[:at])
    if rest[:1] == ["ls"]:
        return _list(values, rest[1:])
    if rest[:1] == ["unreg"]:
        return _send_away(values, one_word(rest[1:], "the worker"))
    at_most(rest, 1)
    if rest and not values.has("config"):
        return _ask_pool(values, rest[0], words[at + 1 :])
    return _ask_as_grain(values, rest[0] if rest else _GRAIN_POOL, words[at + 1 :])


def _ask_pool(values: Values, pool: str, extra: list[str]) -> int:
    if extra:
        raise UsageError(f"`{extra[0]}` goes into the options of the pool", "--option")
    with Client(broker=values.broker) as client:
        if values.has("dry"):
            return _show_script(values, pool, client.pool_script(pool))
        return _ask(values, client, pool)


def _ask_as_grain(values: Values, pool: str, extra: list[str]) -> int:
    """Ask with Grain's file, which is made a pool that asks for none by itself."""
    from grass.cli.parsing.grain_file import read_grain_file

    path = values.text("config") or os.environ.get("GRAIN_CONFIG") or "grain.toml"
    body = read_grain_file(path, pool, extra)
    with Client(broker=values.broker) as client:
        if values.has("dry"):
            return _show_script(values, pool, client.script_of(body))
        known = {one["name"]: one["source"] for one in client.pools()["pools"]}
        if pool not in known:
            client.add_pool(body)
        elif known[pool] != body["source"]:
            raise UsageError(
                f"pool `{pool}` was made from something else than this {path}",
                f"`grass pool remove {pool}`, or `grass up -c {path} NAME`",
            )
        return _ask(values, client, pool)


def _ask(values: Values, client: Client, pool: str) -> int:
    count = values.whole_number("count")
    wanted = 1 if count is None else count
    if wanted < 1:
        raise UsageError("-n is at least 1")
    done = client.ask_for_workers(pool, wanted)
    if values.has("json"):
        print_document({"pool": pool, "count": wanted, **done})
    else:
        say(f"asked {pool} for {counted(wanted, 'worker')}; `grass up ls` lists them")
    return 0


def _show_script(values: Values, pool: str, document: Document) -> int:
    if values.has("json"):
        print_document({"pool": pool, **document})
    else:
        from grass.cli.printing.table import show

        show(document["script"])
    return 0


def _list(values: Values, rest: list[str]) -> int:
    at_most(rest, 1)
    with Client(broker=values.broker) as client:
        pools = client.pools()["pools"]
    if rest:
        pools = [pool for pool in pools if pool["name"] == rest[0]]
    if values.has("json"):
        pilots = [
            {"pool": pool["name"], **one} for pool in pools for one in pool["pilots"]
        ]
        print_document({"workers": pilots})
        return 0
    from grass.cli.printing.table import render, show, this_screen

    show(render(PILOT_HEADER, pilot_rows(pools), this_screen()))
    return 0


def _send_away(values: Values, worker: str) -> int:
    with Client(broker=values.broker) as client:
        done = client.send_away(worker)
    if values.has("json"):
        print_document({"worker": worker, **done})
    else:
        say(f"{worker} leaves once its jobs have ended")
    return 0


COMMAND = Command(
    usage="[OPTIONS] [[-c FILE] [POOL] [-- OPTION...] | ls [POOL] | unreg WORKER]",
    about=(
        "Ask the scheduler of a pool for workers now, whether or not a job waits, also "
        "where the pool is paused. They leave when they were idle for the pool's time. "
        "`ls` lists the workers of pools, and `unreg` has one leave once its jobs have "
        "ended: by its name, its job there, or its mark. Without a pool it reads "
        "Grain's `grain.toml`, and submits the workers that `grain up` would: a pool "
        "that is called `grain` and asks for none by itself."
    ),
    options=OPTIONS,
    examples=(
        "grass up -n 4 uni",
        "grass up --dry uni",
        "grass up -n 4 -c grain.toml",
        "grass up ls",
        "grass up unreg 812",
    ),
    run=run,
)
