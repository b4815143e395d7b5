"""`grass run`: enqueue a job, show what it writes, and exit as it did.

While the job waits, a thread prints the reason on stderr. The handler of Ctrl-C cancels
the job in a thread and over a connection of its own, so that following goes on until
the job has ended; the next Ctrl-C detaches from the job. A restart of the daemon loses
nothing: the client reads on where it was cut off.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from _thread import start_new_thread

from grass.cli.commands.enqueue import (
    QUIET,
    EnqueueLine,
    enqueue_line,
    find_queue,
    give_hint,
)
from grass.cli.commands.logs import away
from grass.cli.commands.wait import GRASS_FAILED, exit_code
from grass.cli.parsing import job_options
from grass.cli.parsing.options import BROKER, Command
from grass.cli.printing.streams import warn
from grass.cli.printing.wording import ENDED_STATES, UNSTARTED, ended
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError, NotFound, Unreachable, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.client.json_codec import Document

OPTIONS = (*job_options.OPTIONS, BROKER, QUIET)
DETACHED = 130
_FIRST_LOOK_S = 0.25
_LONGEST_LOOK_S = 5.0
_PATIENCE_S = 1.0
_RETRY_S = 0.02


class Detached(Exception):
    """The user detaches from the job."""


def run(words: list[str]) -> int:
    """Run a job in the foreground."""
    line = EnqueueLine(OPTIONS, words)
    interrupts = Interrupts()
    try:
        with Client(broker=line.values.broker) as client:
            find_queue(client, line)
            interrupts.listen()
            reply = enqueue_line(client, line)
            give_hint(reply, line.values)
            talk = _ignore if line.values.has("quiet") else warn
            client.outage.tell = talk
            interrupts.take(client, reply["first"])
            job = _follow(client, reply["first"], talk)
            interrupts.wait_for_cancel()
            return exit_code(job)
    except Detached:
        return interrupts.detach()
    except BrokenPipeError:
        interrupts.detach()
        raise
    except UsageError:
        raise
    except (GrassError, Broken) as error:
        warn(str(error))
        interrupts.warn_if_unanswered()
        return GRASS_FAILED


class Interrupts:
    """The handler of Ctrl-C: it cancels the job, and the next one detaches from it."""

    def __init__(self) -> None:
        self._job: int | None = None
        self._client: Client | None = None
        self._count = 0
        self._asked = False
        self._answered = threading.Event()

    def listen(self) -> None:
        """Install the handler, unless Ctrl-C is ignored or handled already."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupted)

    def take(self, client: Client, job: int) -> None:
        """Set the job; a Ctrl-C that came before cancels it now."""
        self._job, self._client = job, client
        if self._count:
            self._asked = True
            self._cancel(client, job)

    def wait_for_cancel(self) -> None:
        """Wait for a cancel that was sent while the job ended."""
        if self._asked:
            self._answered.wait(_PATIENCE_S)

    def warn_if_unanswered(self) -> bool:
        """Warn if a cancel was sent and not answered; tell whether that is so."""
        if not self._asked or self._client is None:
            return False
        # Another Ctrl-C has no handler any more.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.wait_for_cancel()
        if self._answered.is_set():
            return False
        warn(
            f"job {self._job} was perhaps not cancelled: {self._client.peer} has "
            f"not answered (`grass cancel {self._job}`)"
        )
        return True

    def detach(self) -> int:
        """Print how to follow the job again, or that it was not cancelled."""
        if not self.warn_if_unanswered() and self._job is not None:
            warn(f"job {self._job} is left to itself (`grass logs -f {self._job}`)")
        return DETACHED

    def _interrupted(self, _signal: int, _frame: object) -> None:
        self._count += 1
        if self._count > 1:
            raise Detached
        if self._job is not None and self._client is not None:
            # Not in the handler: the code that it interrupts may hold the lock under
            # which a daemon is started, and would never release it.
            self._asked = True
            # Anything longer would miss a Ctrl-C that follows at once.
            start_new_thread(self._cancel_aside, (self._client, self._job))

    def _cancel_aside(self, client: Client, job: int) -> None:
        with CtrlCForMain():
            self._cancel(client, job)

    def _cancel(self, client: Client, job: int) -> None:
        warn(f"cancelling job {job} (Ctrl-C again leaves it to itself)")
        try:
            with client.beside() as aside:
                # A second cancel has no effect, so it may be repeated after a restart.
                aside.repeat(lambda: aside.cancel([str(job)]))
        except (GrassError, Broken) as error:
            warn(f"job {job} could not be cancelled: {error}")
        self._answered.set()


class Notices:
    """A thread that prints what a job waits for, whenever that changes."""

    def __init__(self, client: Client, job: int, talk: Callable[[str], None]) -> None:
        self._client = client
        self._job = job
        self._talk = talk
        self._told = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        """Start the thread."""
        with CtrlCForMain():
            self._thread.start()

    def __exit__(self, *_error: object) -> None:
        """End the thread: one that is killed while it writes keeps stderr locked."""
        self._over.set()
        self._thread.join(_PATIENCE_S)

    def _watch(self) -> None:
        pause = _FIRST_LOOK_S
        with self._client.beside(may_start=False) as client:
            while not self._over.wait(pause):
                pause = min(2 * pause, _LONGEST_LOOK_S)
                try:
                    job = client.job(self._job)
                except (GrassError, OSError):
                    continue  # The main thread gets the same error.
                if self._over.is_set() or not self._tell(job):
                    return

    def _tell(self, job: Document) -> bool:
        """Print what is new; tell whether the job still waits."""
        if job["state"] not in UNSTARTED:
            if self._told and job["state"] not in ENDED_STATES:
                self._talk(f"job {self._job} runs")
            return False
        reason = job["reason"] or job["state"]
        if reason != self._told:
            self._told = reason
            self._talk(f"job {self._job} waits: {reason}")
        return True


def _follow(client: Client, id: int, talk: Callable[[str], None]) -> Document:
    """Copy the output of one attempt after the other; return the job at its end."""
    number = 1
    while True:
        with Notices(client, id, talk):
            copied = _copy(client, id, number, talk)
        job = client.job(id)
        over = job["state"] in ENDED_STATES
        last = job["attempts"][-1]["number"] if job["attempts"] else 0
        if not copied and not _never_wrote(job, number, over=over or last > number):
            time.sleep(_RETRY_S)  # The daemon is about to commit the attempt.
        elif over and last <= number:
            _print_reason(job, talk)
            return job
        else:
            number += 1


def _copy(client: Client, id: int, attempt: int, talk: Callable[[str], None]) -> bool:
    """Copy what an attempt writes until it has ended; tell whether it has output."""
    try:
        following = client.output(
            id, follow=True, attempt=attempt, on_away=lambda job: talk(away(job))
        )
        for piece in following:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    except (NotFound, UsageError):
        return False
    except Unreachable as error:
        # The attempt is over; the job may run on another worker.
        talk(str(error))
    return True


def _never_wrote(job: Document, number: int, *, over: bool) -> bool:
    """Tell whether an attempt is over, or never was, and has no output."""
    outputs = {one["number"]: one["output"] for one in job["attempts"]}
    return over and outputs.get(number) is None


def _print_reason(job: Document, talk: Callable[[str], None]) -> None:
    """Print why a job ended that did not end by itself."""
    if job["exit_code"] is not None and job["state"] in ("succeeded", "failed"):
        return
    talk(ended(job))


def _ignore(_text: str) -> None:
    pass


COMMAND = Command(
    usage="[OPTIONS] [QUEUE] [OPTIONS] [--] COMMAND...",
    about=(
        "Enqueue a job, say what it waits for, show what it writes, and exit with its "
        "code: 128+N when signal N killed it, 125 when it was cancelled, lost or could "
        "not start, 124 when grass itself failed. Ctrl-C cancels the job and waits for "
        "its end; a second one leaves it to itself. The words are those of `grass "
        "enqueue`."
    ),
    options=OPTIONS,
    examples=(
        "grass run -g 1 -- python train.py",
        "grass run --time-limit 10m q1 python test.py",
    ),
    run=run,
)
