"""`grass stop`: stop the daemon, and remember that it was stopped."""

from grass.cli.parsing.options import JSON, Command, Option, at_most, read
from grass.cli.printing.streams import counted, print_document, say, warn
from grass.client.autostart import (
    forget_stop,
    remember_stop,
    start,
    wait_until_gone,
)
from grass.client.client import Client
from grass.config import LOCAL, has_queue, home
from grass.errors import GrassError, NoAnswer, NoDaemon, StorageError

OPTIONS = (Option("--jobs", about="end running jobs too"), JSON)


def run(words: list[str]) -> int:
    """Stop the daemon; it is gone when this returns."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    remember_stop(home())
    try:
        left = stop_daemon(jobs=values.has("jobs"))
    except GrassError:
        # The daemon runs on: other commands may use it.
        forget_stop(home())
        raise
    if values.has("json"):
        print_document({"stopped": left is not None, "running": left or 0})
    elif left is None:
        say("no daemon was running; commands will not start one until `grass start`")
    elif left:
        say(f"grass is stopped; {counted(left, 'job')} still running")
    else:
        say("grass is stopped")
    return 0


def stop_daemon(*, jobs: bool) -> int | None:
    """Stop a daemon; return how many jobs run on, or None if there was no daemon."""
    try:
        with Client(may_start=False, broker=LOCAL) as client:
            running = _running(client)
            ended = client.stop(jobs=jobs)["jobs"]
    except NoAnswer:
        raise
    except NoDaemon:
        wait_until_gone(home())
        if jobs and has_queue(home()):
            return _end_jobs()
        return None
    wait_until_gone(home())
    return max(0, running - len(ended))


def _running(client: Client) -> int:
    """Count the jobs that run; a database that fails is no reason not to stop."""
    try:
        return int(client.overview()["daemon"]["jobs"].get("running", 0))
    except StorageError as error:
        warn(str(error))
        return 0


def _end_jobs() -> int:
    """End jobs without a daemon: a daemon is started for it, which starts no job."""
    start(home(), asked_for=True, starts_jobs=False, options=())[0].close()
    with Client(may_start=False, broker=LOCAL) as client:
        client.stop(jobs=True)
    wait_until_gone(home())
    remember_stop(home())
    return 0


COMMAND = Command(
    usage="[--jobs] [--json]",
    about=(
        "Stop the daemon. Running jobs go on, and their results are there when it is "
        "started again. Until `grass start` or `grass daemon`, other commands refuse "
        "to start one. The jobs of a worker are its broker's: there --jobs is refused "
        "while some run; `grass cancel` them first."
    ),
    options=OPTIONS,
    examples=("grass stop", "grass stop --jobs"),
    run=run,
)
