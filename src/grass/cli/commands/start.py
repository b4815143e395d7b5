"""`grass start`: start the daemon in the background."""

from __future__ import annotations

import time
from shlex import join

from grass.cli.commands.unreported_jobs import warn_of_unreported
from grass.cli.parsing.hosting_options import (
    FRESH,
    HOSTING,
    VISIBLE,
    check,
    choose_gpus,
    given,
    last_hosting,
    managed_gpus,
    next_options,
    visible_gpus,
)
from grass.cli.parsing.options import JSON, Command, Option, at_most, read
from grass.cli.printing.streams import print_document, say, warn
from grass.client.autostart import start
from grass.client.client import Client
from grass.client.connection import Broken, open_connection
from grass.config import LOCAL, home
from grass.errors import NoDatabase, Refused
from grass.model.addresses import is_loopback, read_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.client.credentials import JoinedBroker
    from grass.client.json_codec import Document

OPTIONS = (
    *HOSTING,
    FRESH,
    Option("--new-database", about="begin anew where the database was lost"),
    JSON,
)
CONNECTING_S = 3.0
"""How long a worker may take to find its broker before the command reports."""


def run(words: list[str]) -> int:
    """Start a daemon unless one runs."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    is_up = is_running()
    if not is_up:
        choose_gpus(values)
    options = next_options(values)
    check(options.words)
    if not is_up:
        warn_of_unreported(options.words)
        if values.has("new_database"):
            _begin_new_database()
    elif values.has("new_database"):
        raise Refused("grass is running, so its database is not lost")
    pid, started = start_daemon(options.words)
    if given(values) and not started:
        raise Refused(
            f"grass is running already (pid {pid}), with other options maybe",
            f"`grass restart {join(given(values))}` starts it anew with these",
        )
    if started:
        for line in options.notices:
            warn(line)
    elif _is_otherwise_visible():
        warn(
            f"{VISIBLE} counts when grass starts; `grass restart --gpus LIST` does now"
        )
    report(pid, started=started, as_json=values.has("json"))
    return 0


def _is_otherwise_visible() -> bool:
    """Tell whether a running daemon manages other GPUs than the caller names."""
    return visible_gpus() not in (None, last_hosting().gpus)


def _begin_new_database() -> None:
    from grass.daemon.database.database_loss import begin_anew

    begin_anew(home())


def start_daemon(options: Sequence[str] | None = None) -> tuple[int, bool]:
    """Return the pid of the daemon, and whether it had to be started.

    None as options means those of the daemon before.
    """
    try:
        return _started(options)
    except Broken:
        # It was killed just now, or a broker that hung has ceased to lead.
        return _started(options)


def _started(options: Sequence[str] | None) -> tuple[int, bool]:
    connection, started = start(home(), asked_for=True, options=options)
    connection.ask_this_daemon()
    pid = int(connection.exchange("GET", "/overview")["daemon"]["pid"])
    connection.close()
    return pid, started


def is_running() -> bool:
    """Tell whether a daemon answers on this machine."""
    connection = open_connection(home().socket)
    if connection is None:
        return False
    connection.close()
    return True


def report(pid: int, *, started: bool, as_json: bool) -> None:
    """Print that a daemon runs, for which broker, and how machines join it."""
    with Client(may_start=False, broker=LOCAL) as client:
        daemon = connected_daemon(client)
        line = _invitation(client, daemon) if started else None
    check_refusal(daemon)
    broker = daemon.get("broker")
    if broker and not broker["address"]:
        raise NoDatabase(
            broker["link"],
            f"the daemon (pid {pid}) waits for it, and goes on when it answers",
        )
    gpus = last_hosting().gpus
    if line is not None:
        _warn_of_loopback(daemon["tcp"]["address"])
    if as_json:
        document: Document = {"pid": pid, "started": started}
        document |= {"join": line} if line else {}
        document |= {} if gpus is None else {"gpus": gpus}
        print_document(document | ({"broker": broker} if broker else {}))
        return
    say(f"grass is running{'' if started else ' already'} (pid {pid})")
    if gpus is not None:
        say(f"Managing {managed_gpus(gpus)}")
    if broker:
        say(f"it works for the broker at {broker['address']}: {broker['link']}")
    if line is not None:
        say(line)


def connected_daemon(client: Client) -> Document:
    """Read the daemon's state, once a worker's daemon has called its broker."""
    deadline = time.monotonic() + CONNECTING_S
    while True:
        daemon: Document = client.overview()["daemon"]
        broker = daemon.get("broker")
        if not broker or broker["settled"] or time.monotonic() > deadline:
            return daemon
        time.sleep(0.05)


def check_refusal(daemon: Document) -> None:
    """Raise if the broker refuses this machine.

    A broker that cannot be reached is no failure: the daemon goes on trying.
    """
    broker = daemon.get("broker") or {}
    if broker.get("refused"):
        raise Refused(f"the daemon (pid {daemon['pid']}) has no work: {broker['link']}")


def works_for(daemon: Document, known: JoinedBroker) -> bool:
    """Tell whether a daemon works for a broker that was joined."""
    broker = daemon.get("broker")
    if not broker:
        return False
    if "pin" in broker:
        return bool(broker["pin"] == known.pin)
    # A daemon of an older version reports only the addresses of its broker.
    places = map(read_address, broker["address"].split(","))
    return not set(known.addresses).isdisjoint(places)


def _invitation(client: Client, daemon: Document) -> str | None:
    """Return the line with which machines join a daemon that listens for them."""
    tcp = daemon.get("tcp")
    if not tcp:
        return None
    from grass.model.access import START_CODE

    code = client.new_token(name=START_CODE, code=True)["code"]
    return f"grass join {tcp['address']}/{tcp['pin']}/{code}"


def _warn_of_loopback(place: str) -> None:
    """Warn if no other machine can reach this broker, unless it is advertised so."""
    from grass.daemon.preflight import only_here

    address = read_address(place)
    named = last_hosting().advertise is not None
    if is_loopback(address.host) and not named:
        warn(only_here(address))


COMMAND = Command(
    usage="[OPTIONS] [--json]",
    about=(
        "Start the daemon in the background, unless one runs. A broker prints the line "
        "that other machines join with. The options are those of "
        "`grass daemon`. It also gets those that the last daemon here had, unless one "
        "of the same name is given; --bind and --connect replace each other, with all "
        "that belongs to them. CUDA_VISIBLE_DEVICES counts as --gpus "
        "where that is not given."
    ),
    options=OPTIONS,
    examples=("grass start", "grass start --bind 0.0.0.0:7500"),
    run=run,
)
