"""`grass restart`: stop the daemon and start it again.

The stop is not remembered meanwhile, so commands of others carry on.
"""

from grass.cli.options import JSON, Command, at_most, read
from grass.cli.printing import print_document, say
from grass.cli.start import start_daemon
from grass.cli.stop import stop_daemon
from grass.config import home
from grass.settings import settings_of

OPTIONS = (JSON,)


def run(words: list[str]) -> int:
    """Replace the daemon; running jobs do not notice."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    # A mistake in the settings must not cost the daemon that runs.
    settings_of(home())
    stop_daemon(jobs=False)
    pid, _ = start_daemon()
    if values.has("json"):
        print_document({"pid": pid})
    else:
        say(f"grass is running (pid {pid})")
    return 0


COMMAND = Command(
    usage="[--json]",
    about="Stop the daemon and start it again, after an upgrade. Running jobs go on.",
    options=OPTIONS,
    examples=("grass restart",),
    run=run,
)
