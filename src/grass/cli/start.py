"""`grass start`: start the daemon in the background."""

from __future__ import annotations

from grass.cli.hosting_options import HOSTING, given, hosting_of
from grass.cli.options import JSON, Command, at_most, read
from grass.cli.printing import print_document, say
from grass.client.autostart import start
from grass.client.client import Client
from grass.config import LOCAL, home
from grass.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.client.wire import Document

OPTIONS = (*HOSTING, JSON)


def run(words: list[str]) -> int:
    """Start a daemon unless one runs."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    options = given(values)
    hosting_of(values)
    pid, started = start_daemon(options)
    if options and not started:
        raise Refused(
            f"grass is running already (pid {pid}), with other options maybe",
            f"`grass restart {' '.join(options)}` starts it anew with these",
        )
    report(pid, started=started, as_json=values.has("json"))
    return 0


def start_daemon(options: Sequence[str] | None = ()) -> tuple[int, bool]:
    """Return the pid of the daemon, and whether it had to be started.

    None as options means those of the daemon before.
    """
    connection, started = start(home(), asked_for=True, options=options)
    pid = int(connection.exchange("GET", "/overview")["daemon"]["pid"])
    connection.close()
    return pid, started


def report(pid: int, *, started: bool, as_json: bool) -> None:
    """Say that a daemon runs, and how others join it."""
    line = _invitation() if started else None
    if as_json:
        document: Document = {"pid": pid, "started": started}
        print_document({**document, "join": line} if line else document)
        return
    say(f"grass is running{'' if started else ' already'} (pid {pid})")
    if line is not None:
        say(line)


def _invitation() -> str | None:
    """Ask a daemon that listens for other machines for the line they join with."""
    with Client(may_start=False, broker=LOCAL) as client:
        door = client.overview()["daemon"].get("door")
        if not door:
            return None
        code = client.new_token(code=True)["code"]
    return f"grass join {door['address']}/{door['pin']}/{code}"


COMMAND = Command(
    usage="[OPTIONS] [--json]",
    about=(
        "Start the daemon in the background, unless one runs. The options are those of "
        "`grass daemon`."
    ),
    options=OPTIONS,
    examples=("grass start", "grass start --bind 0.0.0.0:7500"),
    run=run,
)
