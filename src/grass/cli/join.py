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
from typing import NamedTuple

from grass.cli.options import JSON, Command, Option, read
from grass.cli.printing import counted, print_document, say, warn
from grass.cli.start import settled, start_daemon
from grass.cli.states import UNFINISHED
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


class Obstacle(NamedTuple):
    """Why this machine's daemon does not become a worker now, and what would help."""

    what: str
    remedy: str


class Outcome(NamedTuple):
    """What came of joining a broker."""

    known: Known
    before: str | None
    """The broker that this machine worked for until now."""
    pid: int | None
    """The daemon that works for it."""
    obstacle: Obstacle | None

    def document(self) -> Document:
        """Write it down for programs."""
        return {
            "broker": self.known.place,
            "pin": self.known.pin,
            "cluster": self.known.cluster,
            "name": self.known.name,
            "role": self.known.role,
            "pid": self.pid,
            "obstacle": None if self.obstacle is None else self.obstacle.what,
        }


def run(words: list[str]) -> int:
    """Join the broker that a line names."""
    values, rest = read(OPTIONS, words)
    invitation = read_invitation(" ".join(rest) or _line())
    place = home()
    make(place)
    may_start = not values.has("no_start")
    # Whatever goes wrong here must do so before the broker gives a token.
    before = _other_broker(place, invitation.pin)
    obstacle = _obstacle(place, invitation.pin) if may_start else None
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
    if not _may_work(known):
        may_start, obstacle = False, None
    pid = _hire() if may_start and obstacle is None else None
    outcome = Outcome(known, before, pid, obstacle)
    if values.has("json"):
        print_document(outcome.document())
    else:
        _report(outcome)
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


def _other_broker(place: Home, pin: str) -> str | None:
    """Name the broker that this machine works for, unless it is the one of the pin."""
    known = Credentials.load(place).current()
    if known is None or known.pin == pin or not _may_work(known):
        return None
    return known.place


def _may_work(known: Known) -> bool:
    return Right.WORK in ROLES.get(known.role, frozenset())


def _obstacle(place: Home, pin: str) -> Obstacle | None:
    """Say why this machine's daemon cannot become a worker now, if it cannot.

    Asked before the broker is noted down, because a daemon that is started after that
    is a worker already.
    """
    current = Credentials.load(place).current()
    if current is not None and current.pin == pin:
        return None
    daemon = _daemon(place)
    if daemon is None:
        return None
    if daemon.get("door"):
        remedy = "`grass restart --no-broker` makes it a worker instead"
        return Obstacle("this machine's daemon is a broker for others", remedy)
    jobs = sum(daemon["jobs"].get(state, 0) for state in UNFINISHED)
    if not jobs:
        return None
    whose = "of another broker" if daemon.get("broker") else "of its own"
    what = f"this machine has {counted(jobs, 'unfinished job')} {whose}"
    ended = "it has" if jobs == 1 else "they have"
    return Obstacle(what, f"`grass restart` makes it a worker once {ended} ended")


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


def _report(outcome: Outcome) -> None:
    known, obstacle = outcome.known, outcome.obstacle
    say(f"joined the broker at {known.place} as {known.name} (role {known.role})")
    if outcome.pid is not None:
        no_more = f", and no more for {outcome.before}" if outcome.before else ""
        say(f"this machine works for it now (pid {outcome.pid}){no_more}: {_link()}")
    elif obstacle is not None:
        warn(f"{obstacle.what}: {obstacle.remedy}")
    elif _may_work(known):
        say("`grass restart` makes this machine's daemon a worker of it")
    _tell_where_commands_go(known)


def _link() -> str:
    """Ask this machine's daemon how its link to the broker does."""
    with Client(may_start=False, broker=LOCAL) as client:
        broker = settled(client).get("broker") or {}
    return str(broker.get("link", "not connected yet"))


def _tell_where_commands_go(known: Known) -> None:
    if Right.READ in ROLES.get(known.role, frozenset()):
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
