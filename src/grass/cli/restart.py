"""`grass restart`: stop the daemon and start it again.

The stop is not remembered meanwhile, so commands of others carry on.
"""

from grass.cli.hosting_options import FRESH, HOSTING, check, given, wanted
from grass.cli.options import JSON, Command, at_most, read
from grass.cli.printing import print_document, say
from grass.cli.start import report, start_daemon
from grass.cli.stop import stop_daemon
from grass.config import home
from grass.settings import settings_of

OPTIONS = (*HOSTING, FRESH, JSON)


def run(words: list[str]) -> int:
    """Replace the daemon; running jobs do not notice."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    # A mistake in settings or options must not cost the daemon that runs.
    settings_of(home())
    options = wanted(values)
    check(options)
    stop_daemon(jobs=False)
    pid, started = start_daemon(options)
    if given(values):
        report(pid, started=started, as_json=values.has("json"))
    elif values.has("json"):
        print_document({"pid": pid})
    else:
        say(f"grass is running (pid {pid})")
    return 0


COMMAND = Command(
    usage="[OPTIONS] [--json]",
    about=(
        "Stop the daemon and start it again, after an upgrade. Running jobs go on. "
        "Without options, which are those of `grass daemon`, it gets those it had."
    ),
    options=OPTIONS,
    examples=("grass restart",),
    run=run,
)
