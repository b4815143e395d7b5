"""`grass up`: ask a pool for workers by hand, as with `grain up`."""

from __future__ import annotations

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

OPTIONS = (
    Option("-n, --count", "N", "how many workers to ask for (1)"),
    Option(
        "--dry", about="print what the scheduler would be given, and ask for nothing"
    ),
    BROKER,
    JSON,
)


def run(words: list[str]) -> int:
    """Ask for workers, list them, or send one away."""
    values, rest = read(OPTIONS, words)
    if rest[:1] == ["ls"]:
        return _list(values, rest[1:])
    if rest[:1] == ["unreg"]:
        return _send_away(values, one_word(rest[1:], "the worker"))
    return _ask(values, one_word(rest, "the pool"))


def _ask(values: Values, pool: str) -> int:
    count = values.whole_number("count")
    wanted = 1 if count is None else count
    if wanted < 1:
        raise UsageError("-n is at least 1")
    with Client(broker=values.broker) as client:
        if values.has("dry"):
            return _show_script(values, client, pool)
        done = client.ask_for_workers(pool, wanted)
    if values.has("json"):
        print_document({"pool": pool, "count": wanted, **done})
    else:
        say(f"asked {pool} for {counted(wanted, 'worker')}; `grass up ls` lists them")
    return 0


def _show_script(values: Values, client: Client, pool: str) -> int:
    document = client.pool_script(pool)
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
    usage="[-n N] [--dry] [--broker ADDRESS] [--json] POOL | ls [POOL] | unreg WORKER",
    about=(
        "Ask the scheduler of a pool for workers now, whether or not a job waits, also "
        "where the pool is paused. They leave when they were idle for the pool's time. "
        "`ls` lists the workers of pools, and `unreg` has one leave once its jobs have "
        "ended: by its name, its job there, or its mark."
    ),
    options=OPTIONS,
    examples=(
        "grass up -n 4 uni",
        "grass up --dry uni",
        "grass up ls",
        "grass up unreg 812",
    ),
    run=run,
)
