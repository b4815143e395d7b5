"""`grass join`: make this machine known to a broker, and work for it.

The line that the broker prints holds its address, its pin and a code. The broker has to
prove the key of that pin before it is shown the code; for the code it gives a token,
which is kept in the state directory. A machine that may work gets its daemon started
anew as a worker, unless that would leave unfinished jobs of its own behind.
"""

from __future__ import annotations

import os
import sys
import time

from grass.cli.options import JSON, Command, Option, read
from grass.cli.printing import counted, print_document, say, warn
from grass.cli.start import settled, start_daemon
from grass.cli.stop import stop_daemon
from grass.client.autostart import make, remember_stop, remembered, start
from grass.client.client import Client
from grass.client.connection import open_connection
from grass.client.credentials import Credentials, Known
from grass.config import LOCAL, Home, home
from grass.daemon.hosting import forget_employer
from grass.model.addresses import Invitation, read_invitation
from grass.model.rights import ROLES, Right
from grass.model.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.client.wire import Document

OPTIONS = (
    Option("--name", "NAME", "what to call this machine there (default: its own name)"),
    Option("--no-start", about="leave this machine's daemon as it is"),
    JSON,
)
_UNFINISHED = ("held", "waiting", "queued", "running")


def run(words: list[str]) -> int:
    """Join the broker that a line names."""
    values, rest = read(OPTIONS, words)
    invitation = read_invitation(" ".join(rest) or _line())
    place = home()
    make(place)
    may_start = not values.has("no_start")
    # Whatever goes wrong here must do so before the broker gives a token.
    obstacle = _obstacle(place, invitation.pin) if may_start else ""
    wanted = values.text("name")
    with Client.invited(place, invitation) as client:
        told = client.join(invitation.code, wanted or _own_name(), *_identity(place))
    known = Credentials.load(place).add(_known(invitation, told))
    if wanted not in (None, known.name):
        warn(
            f"the broker calls this machine `{known.name}`: one that joins again keeps"
            " its name, and no two have the same"
        )
    forget_employer(place, remembered(place))
    if Right.WORK not in ROLES.get(known.role, frozenset()):
        may_start, obstacle = False, ""
    pid = _hire() if may_start and not obstacle else None
    _report(as_json=values.has("json"), known=known, pid=pid, obstacle=obstacle)
    return 0


def _hire() -> int:
    """Start this machine's daemon anew; it finds by itself whom it works for."""
    stop_daemon(jobs=False)
    return start_daemon(None)[0]


def _line() -> str:
    """Read the line from stdin, where no other user sees it."""
    if sys.stdin.isatty():
        sys.stderr.write("paste the line that the broker prints: ")
        sys.stderr.flush()
        return sys.stdin.readline()
    # What `grass start --bind` prints is more than the line alone.
    lines = [line for line in sys.stdin.read().splitlines() if line.strip()]
    likely = [line for line in lines if line.startswith("grass join ")]
    return next(iter(likely or lines), "")


def _own_name() -> str:
    host = os.uname().nodename.partition(".")[0]
    kept = "".join(one if one.isascii() and one.isalnum() else "-" for one in host)
    return kept.strip("-") or "machine"


def _identity(place: Home) -> tuple[str, str]:
    """Return the worker's id and which home this is, as its daemon has or will have."""
    from grass.daemon.machine import home_instance, worker_id

    return worker_id(place), home_instance(place)


def _known(invitation: Invitation, told: Document) -> Known:
    return Known(
        pin=invitation.pin,
        token=told["token"],
        role=told["role"],
        name=told["name"],
        addresses=(invitation.address,),
        cluster=told["cluster"],
        joined_at=rfc3339(time.time_ns() // 1000) or "",
    )


def _obstacle(place: Home, pin: str) -> str:
    """Say why this machine's daemon cannot become a worker now, if it cannot.

    Asked before the broker is noted down, because a daemon that is started after that
    is a worker already.
    """
    before = Credentials.load(place).current()
    if before is not None and before.pin == pin:
        return ""
    daemon = _daemon(place)
    if daemon is None:
        return ""
    if daemon.get("door"):
        return "this machine's daemon is a broker for others"
    jobs = sum(daemon["jobs"].get(state, 0) for state in _UNFINISHED)
    if not jobs:
        return ""
    whose = "of another broker" if daemon.get("broker") else "of its own"
    return f"this machine has {counted(jobs, 'unfinished job')} {whose}"


def _daemon(place: Home) -> Document | None:
    """Ask this machine's daemon about itself; one that is stopped may have jobs."""
    found = open_connection(place.socket)
    if found is None and not os.path.exists(place.database):
        return None
    if found is not None:
        found.close()
        return _asked()
    was_stopped = os.path.exists(place.stopped)
    start(place, asked_for=True, starts_jobs=False)[0].close()
    told = _asked()
    stop_daemon(jobs=False)
    if was_stopped:
        remember_stop(place)
    return told


def _asked() -> Document:
    with Client(may_start=False, broker=LOCAL) as client:
        told: Document = client.overview()["daemon"]
    return told


def _report(*, as_json: bool, known: Known, pid: int | None, obstacle: str) -> None:
    if as_json:
        print_document(
            {
                "broker": known.place,
                "pin": known.pin,
                "cluster": known.cluster,
                "name": known.name,
                "role": known.role,
                "pid": pid,
                "obstacle": obstacle or None,
            }
        )
        return
    say(f"joined the broker at {known.place} as {known.name} (role {known.role})")
    rights = ROLES.get(known.role, frozenset())
    if pid is not None:
        with Client(may_start=False, broker=LOCAL) as client:
            broker = settled(client).get("broker") or {}
        link = broker.get("link", "not connected yet")
        say(f"this machine works for it now (pid {pid}): {link}")
    elif obstacle:
        warn(f"{obstacle}: `grass restart` makes it a worker once that is no more")
    elif Right.WORK in rights:
        say("`grass restart` makes this machine's daemon a worker of it")
    if Right.READ in rights:
        say(f"commands go there from now on; `--broker {LOCAL}` means this machine")
    else:
        warn(
            f"commands go there from now on, but the role `{known.role}` may neither"
            f" look nor enqueue there: `--broker {LOCAL}` means this machine, and a"
            " line of `grass token new --role machine` may do more"
        )


COMMAND = Command(
    usage="[--name NAME] [--no-start] [--json] [HOST:PORT/PIN/CODE]",
    about=(
        "Join the broker of another machine, with the line that it prints when it "
        "starts, or that `grass token new` prints there. Without a line it is read "
        "from stdin. From then on commands speak to that broker; where the line's role "
        "allows it, this machine's daemon is started anew as a worker of it. Joining "
        "again renews the token."
    ),
    options=OPTIONS,
    examples=(
        "grass join my.server.com:7500/PIN/CODE",
        "ssh my.server.com grass token new | grass join",
    ),
    run=run,
)
