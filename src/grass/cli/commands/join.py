"""`grass join`: register this machine at a broker, and work for it.

The line that the broker prints holds its address, its pin and a code. The code is sent
only after the broker has proved the key of that pin. The broker returns a token, which
is kept in the state directory. If the token's role may run jobs, this machine's daemon
is started again as a worker, unless it has unfinished jobs of its own.
"""

import os
import sys
import time
from typing import NamedTuple

from grass.cli.commands.standby import join_as_standby
from grass.cli.commands.start import (
    check_refusal,
    connected_daemon,
    start_daemon,
    works_for,
)
from grass.cli.commands.stop import stop_daemon
from grass.cli.commands.unreported_jobs import warn_of_unreported
from grass.cli.parsing.hosting_options import last_hosting, name_of
from grass.cli.parsing.options import JSON, Command, Option, read
from grass.cli.printing.streams import counted, print_document, say, warn
from grass.cli.printing.wording import UNFINISHED_STATES
from grass.client.autostart import make, remember_stop, remembered, start
from grass.client.client import Client
from grass.client.connection import open_connection
from grass.client.credentials import Credentials, JoinedBroker
from grass.client.json_codec import Document
from grass.config import LOCAL, Home, has_queue, home
from grass.daemon.hosting import forget_name, forget_remote_broker
from grass.errors import UsageError
from grass.model.access import Right, may_work, rights_of
from grass.model.addresses import Invitation, read_address, read_invitation
from grass.model.times import rfc3339

OPTIONS = (
    Option("--name", "NAME", "what to call this machine there (default: its own name)"),
    Option("--no-start", about="leave this machine's daemon as it is"),
    Option("--standby", about="be a second broker of the same cluster"),
    Option(
        "--bind", "HOST:PORT", "with --standby: where it listens (0.0.0.0, same port)"
    ),
    Option("--advertise", "HOST", "with --standby: the name by which others reach it"),
    Option(
        "--store", "URL", "with --standby: the database, if it is named otherwise here"
    ),
    JSON,
)
_NO_WORKER = "this machine's daemon is no worker"
_INSTEAD = "`grass restart --no-broker` makes it a worker instead"


class JoinObstacle(NamedTuple):
    """Why this machine's daemon does not become a worker now, and the next step."""

    what: str
    remedy: str


class JoinResult(NamedTuple):
    """The result of joining a broker."""

    known: JoinedBroker
    before: str | None = None
    """The broker that this machine's daemon worked for until now."""
    daemon: Document | None = None
    """The state of the daemon that works for it."""
    obstacle: JoinObstacle | None = None

    def document(self) -> Document:
        """Return it as a document for `--json`."""
        return {
            "broker": self.known.place,
            "pin": self.known.pin,
            "cluster": self.known.cluster,
            "name": self.known.name,
            "role": self.known.role,
            "pid": None if self.daemon is None else self.daemon["pid"],
            "obstacle": None if self.obstacle is None else self.obstacle.what,
        }


def run(words: list[str]) -> int:
    """Join the broker that a line names."""
    values, rest = read(OPTIONS, words)
    invitation = read_invitation(" ".join(rest) or _line())
    place = home()
    make(place)
    if values.has("standby"):
        return join_as_standby(place, invitation, values, _own_name(), _identity(place))
    for option in ("bind", "advertise", "store"):
        if values.has(option):
            raise UsageError(f"--{option} goes with --standby")
    wanted = name_of(values) or last_hosting().name
    # This comes first: it may fail, and then no token must have been made. And a daemon
    # that is started once the credentials are saved is a worker of that broker already.
    before = None if values.has("no_start") else _daemon_before(place)
    with Client.invited(place, invitation) as client:
        told = client.join(invitation.code, wanted or _own_name(), *_identity(place))
    known = Credentials.load(place).add(_known(invitation, told))
    if wanted not in ("", known.name):
        warn(
            f"the broker calls this machine `{known.name}`: one that joins again keeps"
            " its name, and no two have the same"
        )
    _forget_options(place, known)
    if before is None or not may_work(known.role):
        outcome = JoinResult(known)
    else:
        outcome = _become_worker(known, before)
    if values.has("json"):
        print_document(outcome.document())
    else:
        _report(outcome)
    return 0


def _forget_options(place: Home, known: JoinedBroker) -> None:
    """Forget the daemon's earlier broker, and a name that this broker did not give."""
    forget_remote_broker(place, remembered(place))
    if may_work(known.role) and not last_hosting().stays_broker:
        forget_name(place, remembered(place))


def _become_worker(known: JoinedBroker, before: Document) -> JoinResult:
    """Start this machine's daemon again as a worker, unless there is an obstacle."""
    obstacle = _obstacle(before, known)
    if obstacle is not None:
        return JoinResult(known, obstacle=obstacle)
    warn_of_unreported(remembered(home()))
    stop_daemon(jobs=False)
    # It finds its broker in the credentials.
    start_daemon(None)
    with Client(may_start=False, broker=LOCAL) as client:
        daemon = connected_daemon(client)
    check_refusal(daemon)
    if not works_for(daemon, known):
        return JoinResult(known, obstacle=JoinObstacle(_NO_WORKER, _INSTEAD))
    return JoinResult(known, _another(before, known), daemon)


def _another(before: Document, known: JoinedBroker) -> str | None:
    """Return the address of the daemon's earlier broker, if that is another one."""
    if not before.get("broker") or works_for(before, known):
        return None
    return str(before["broker"]["address"])


def _line() -> str:
    """Read the line from stdin, where other users do not see it."""
    if sys.stdin.isatty():
        sys.stderr.write("paste the line that the broker prints: ")
        sys.stderr.flush()
        return sys.stdin.readline()
    # `grass start --bind` prints more than the line alone.
    lines = [line for line in sys.stdin.read().splitlines() if line.strip()]
    likely = [line for line in lines if line.startswith("grass join ")]
    return next(iter(likely or lines), "")


def _own_name() -> str:
    host = os.uname().nodename.partition(".")[0]
    kept = "".join(one if one.isascii() and one.isalnum() else "-" for one in host)
    return kept.strip("-") or "machine"


def _identity(place: Home) -> tuple[str, str]:
    """Return the ids of the worker and of this home, which its daemon uses too."""
    from grass.daemon.worker_setup import home_instance, worker_id

    return worker_id(place), home_instance(place)


def _known(invitation: Invitation, told: Document) -> JoinedBroker:
    return JoinedBroker(
        pin=invitation.pin,
        token=told["token"],
        role=told["role"],
        name=told["name"],
        addresses=(invitation.address, *map(read_address, told.get("brokers", ()))),
        cluster=told["cluster"],
        joined_at=rfc3339(time.time_ns() // 1000) or "",
    )


def _obstacle(daemon: Document, known: JoinedBroker) -> JoinObstacle | None:
    """Return why this machine's daemon does not become a worker now, or None."""
    hosting = last_hosting()
    if not hosting.has_worker:
        return JoinObstacle("this machine is to run no jobs (--no-worker)", _INSTEAD)
    if daemon.get("tcp") or hosting.stays_broker:
        return JoinObstacle("this machine's daemon is a broker for others", _INSTEAD)
    jobs = sum(daemon["jobs"].get(state, 0) for state in UNFINISHED_STATES)
    if not jobs or works_for(daemon, known):
        return None
    whose = "of another broker" if daemon.get("broker") else "of its own"
    what = f"this machine has {counted(jobs, 'unfinished job')} {whose}"
    ended = "it has" if jobs == 1 else "they have"
    return JoinObstacle(what, f"`grass restart` makes it a worker once {ended} ended")


def _daemon_before(place: Home) -> Document:
    """Read the state of this machine's daemon; one that is stopped may have jobs."""
    found = open_connection(place.socket)
    if found is not None:
        found.close()
        return _daemon_state()
    if last_hosting().stays_broker or not has_queue(place):
        return {"jobs": {}}
    was_stopped = os.path.exists(place.stopped)
    # With a broker in the credentials it would be a worker, which has no queue.
    options = ("--no-worker",) if Credentials.load(place).all else None
    start(place, asked_for=True, starts_jobs=False, options=options)[0].close()
    state = _daemon_state()
    stop_daemon(jobs=False)
    if was_stopped:
        remember_stop(place)
    return state


def _daemon_state() -> Document:
    with Client(may_start=False, broker=LOCAL) as client:
        state: Document = client.overview()["daemon"]
    return state


def _report(outcome: JoinResult) -> None:
    known, daemon, obstacle = outcome.known, outcome.daemon, outcome.obstacle
    say(f"joined the broker at {known.place} as {known.name} (role {known.role})")
    if daemon is not None:
        no_more = f", and no more for {outcome.before}" if outcome.before else ""
        link = daemon["broker"]["link"]
        say(f"this machine works for it now (pid {daemon['pid']}){no_more}: {link}")
    elif obstacle is not None:
        warn(f"{obstacle.what}: {obstacle.remedy}")
    elif may_work(known.role):
        more = " --no-broker" if last_hosting().stays_broker else ""
        say(f"`grass restart{more}` makes this machine's daemon a worker of it")
    _tell_where_commands_go(known)


def _tell_where_commands_go(known: JoinedBroker) -> None:
    if Right.READ in rights_of(known.role):
        say(f"commands go there from now on; `--broker {LOCAL}` means this machine")
    else:
        warn(
            f"commands go there from now on, but the role `{known.role}` may neither"
            f" look nor enqueue there: `--broker {LOCAL}` means this machine, and a"
            " line of `grass token new --role machine` may do more"
        )


COMMAND = Command(
    usage="[--standby] [--name NAME] [--no-start] [--json] [HOST:PORT/PIN/CODE]",
    about=(
        "Join the broker of another machine, with the line that it prints when it "
        "starts, or that `grass token new` prints there. Without a line it is read "
        "from stdin. From then on commands speak to that broker; where the line's role "
        "allows it, this machine's daemon is started anew as a worker of it. Joining "
        "again renews the token. With --standby, and a line of `grass token new --role "
        "broker`, this machine becomes a second broker of that cluster."
    ),
    options=OPTIONS,
    examples=(
        "grass join my.server.com:7500/PIN/CODE",
        "ssh my.server.com grass token new | grass join",
    ),
    run=run,
)
