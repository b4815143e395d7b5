"""`grass restart`: stop the daemon and start it again.

It leaves no mark of the stop, so that other commands wait for the new daemon.
"""

from grass.cli.commands.start import is_running, report, start_daemon
from grass.cli.commands.stop import stop_daemon
from grass.cli.commands.unreported_jobs import warn_of_unreported
from grass.cli.parsing.hosting_options import (
    FRESH,
    HOSTING,
    check,
    check_gpus,
    check_successor,
    next_options,
)
from grass.cli.parsing.options import JSON, Command, at_most, read
from grass.cli.printing.streams import warn
from grass.client.autostart import check_owner
from grass.config import home
from grass.errors import GrassError
from grass.settings import settings_of

OPTIONS = (*HOSTING, FRESH, JSON)


def run(words: list[str]) -> int:
    """Replace the daemon; running jobs do not notice."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    # A mistake in settings or options must not stop the daemon that runs.
    settings_of(home())
    options = next_options(values)
    check_gpus(values)
    _check(options.words)
    for line in options.notices:
        warn(line)
    warn_of_unreported(options.words)
    stop_daemon(jobs=False)
    pid, started = start_daemon(options.words)
    report(pid, started=started, as_json=values.has("json"))
    return 0


def _check(options: list[str]) -> None:
    """Refuse options that could not work before the daemon is stopped."""
    if not is_running():
        check(options)
        return
    try:
        check_owner(home())
        check_successor(options)
    except GrassError as error:
        error.message += "; the daemon runs on as before"
        raise


COMMAND = Command(
    usage="[OPTIONS] [--json]",
    about=(
        "Stop the daemon and start it again, after an upgrade. Running jobs go on. A "
        "broker prints the line again that other machines join with, with a new code. "
        "It gets the options it had; those given here, which are those of `grass "
        "daemon`, replace the ones of the same name. --bind and --connect replace each "
        "other, with all that belongs to them. An option that could not work is "
        "refused before the daemon is stopped."
    ),
    options=OPTIONS,
    examples=("grass restart", "grass restart --label a100"),
    run=run,
)
