"""`grass stop`: stop the daemon, and remember that it was stopped."""

import os
import threading
from collections.abc import Callable
from signal import SIGKILL, SIGTERM
from typing import NamedTuple

from grass.cli.parsing.options import JSON, Command, Option, at_most, read
from grass.cli.printing.streams import counted, print_document, say, warn
from grass.client.autostart import (
    forget_stop,
    remember_stop,
    start,
    wait_until_gone,
)
from grass.client.client import Client
from grass.client.daemon_end import DaemonProcess, daemon_of
from grass.config import LOCAL, has_queue, home
from grass.errors import GrassError, NoAnswer, NoDaemon, StorageError

ANSWER_S, PROBES_S = 10.0, 5.0
"""How long the daemon may take to answer; probing it takes some time beside that."""
TERM_S, STOPPING_S = 10.0, 30.0
"""How long a daemon may take to end: one that got SIGTERM, and one that answered."""
KILLED_S = 5.0
QUIET_S = 2.5
"""How long a stop may take before a notice is given."""

OPTIONS = (Option("--jobs", about="end running jobs too"), JSON)


def run(words: list[str]) -> int:
    """Stop the daemon; it is gone when this returns."""
    values, rest = read(OPTIONS, words)
    at_most(rest, 0)
    was_stopped = os.path.exists(home().stopped)
    remember_stop(home())
    try:
        stopped = stop_daemon(jobs=values.has("jobs"))
    except GrassError:
        # The daemon runs on: other commands may use it.
        if not was_stopped:
            forget_stop(home())
        raise
    if values.has("json"):
        print_document(stopped._asdict())
    elif not stopped.stopped:
        say("no daemon was running; commands will not start one until `grass start`")
    elif stopped.running:
        say(f"grass is stopped; {counted(stopped.running, 'job')} still running")
    else:
        say("grass is stopped")
    return 0


class Stopped(NamedTuple):
    """What was stopped."""

    stopped: bool
    """Whether there was a daemon."""
    running: int | None
    """How many jobs run on; None: the daemon did not answer."""
    killed: bool = False


def stop_daemon(*, jobs: bool) -> Stopped:
    """Stop the daemon, if there is one; it is gone when this returns.

    One that does not answer gets SIGTERM. One that is still there then, or some time
    after it was to stop, is killed: its keeper and its jobs go on.
    """
    daemon, running, limit_s = daemon_of(home()), None, STOPPING_S
    try:
        running = _running_on(jobs=jobs)
    except NoDaemon as error:
        if daemon is None:
            if isinstance(error, NoAnswer):
                raise
            wait_until_gone(home())
            return _without_daemon(Stopped(stopped=False, running=0), jobs=jobs)
        daemon.send(SIGTERM)
        limit_s = TERM_S
    killed = daemon is not None and _kill_after(daemon, limit_s)
    wait_until_gone(home())
    stopped = Stopped(stopped=True, running=running, killed=killed)
    return stopped if running is not None else _without_daemon(stopped, jobs=jobs)


def _running_on(*, jobs: bool) -> int:
    """Request the stop; return how many jobs run on.

    Ending the jobs may take as long as they do. All else is answered at once, or never.
    """

    def request() -> int:
        with Client(may_start=False, broker=LOCAL) as client:
            client.answer_s = ANSWER_S
            running = _running(client)
            return max(0, running - len(client.stop(jobs=jobs)["jobs"]))

    return request() if jobs else _in_time(request)


def _running(client: Client) -> int:
    """Count the jobs that run; a database that fails is no reason not to stop."""
    try:
        return int(client.overview()["daemon"]["jobs"].get("running", 0))
    except StorageError as error:
        warn(str(error))
        return 0


def _in_time(request: Callable[[], int]) -> int:
    """Make a request that may be left without an answer, though the daemon answers."""
    outcome: list[int | BaseException] = []

    def run() -> None:
        try:
            outcome.append(request())
        except BaseException as error:  # noqa: BLE001 -- raised in the other thread
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(ANSWER_S + PROBES_S)
    result = outcome[0] if outcome else NoAnswer("the daemon does not answer")
    if isinstance(result, BaseException):
        raise result
    return result


def _kill_after(daemon: DaemonProcess, limit_s: float) -> bool:
    """Wait for the end of a daemon, and kill it after a time; return whether it was."""
    if daemon.ends_within(min(QUIET_S, limit_s)):
        return False
    who = f"the daemon (pid {daemon.pid})"
    warn(f"{who} is stopping; it will be killed in {limit_s:.0f} s")
    if daemon.ends_within(limit_s):
        return False
    daemon.send(SIGKILL)
    if not daemon.ends_within(KILLED_S):
        raise NoAnswer(
            f"{who} does not end, though it was killed",
            "its disk may not answer: see `dmesg`",
        )
    warn(f"{who} was killed; running jobs go on")
    return True


def _without_daemon(stopped: Stopped, *, jobs: bool) -> Stopped:
    """End jobs without a daemon: a daemon is started for it, which starts no job."""
    if not (jobs and has_queue(home())):
        return stopped
    start(home(), asked_for=True, starts_jobs=False, options=())[0].close()
    with Client(may_start=False, broker=LOCAL) as client:
        client.stop(jobs=True)
    wait_until_gone(home())
    remember_stop(home())
    return stopped._replace(stopped=True, running=0)


COMMAND = Command(
    usage="[--jobs] [--json]",
    about=(
        "Stop the daemon. Running jobs go on, and their results are there when it is "
        "started again. Until `grass start` or `grass daemon`, other commands refuse "
        "to start one. A daemon that hangs is killed after a time, which is printed; "
        "its jobs go on. The jobs of a worker are its broker's: there --jobs is "
        "refused while some run; `grass cancel` them first."
    ),
    options=OPTIONS,
    examples=("grass stop", "grass stop --jobs"),
    run=run,
)
