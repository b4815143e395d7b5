"""`grass start`: start the daemon in the background."""

from grass.cli.options import JSON, Command, at_most, read
from grass.cli.printing import print_document, say
from grass.client.autostart import start
from grass.config import home

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Start a daemon unless one runs."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    pid, started = start_daemon()
    if values.has("json"):
        print_document({"pid": pid, "started": started})
    elif started:
        say(f"grass is running (pid {pid})")
    else:
        say(f"grass is running already (pid {pid})")
    return 0


def start_daemon() -> tuple[int, bool]:
    """Return the pid of the daemon, and whether it had to be started."""
    connection, started = start(home(), asked_for=True)
    pid = int(connection.exchange("GET", "/overview")["daemon"]["pid"])
    connection.close()
    return pid, started


COMMAND = Command(
    usage="[--json]",
    about=(
        "Start the daemon in the background. Commands do so by themselves, except "
        "after `grass stop`."
    ),
    options=OPTIONS,
    examples=("grass start",),
    run=run,
)
