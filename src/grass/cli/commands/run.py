"""`grass run`: enqueue a job, show what it writes, and exit as it did.

While the job waits, a thread prints the reason on stderr. A restart of the daemon loses
nothing: the client reads on where it was cut off. `interrupts` has what Ctrl-C does,
and `job_input` what is passed on to the job's stdin.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
import time

from grass.cli.commands.enqueue import enqueue_line, find_queue, give_hint
from grass.cli.commands.interrupts import Detached, HungUp, Interrupts
from grass.cli.commands.logs import away
from grass.cli.commands.wait import GRASS_FAILED, exit_code
from grass.cli.parsing import job_options
from grass.cli.parsing.enqueue_line import EnqueueLine
from grass.cli.parsing.job_options import NO_DIRECTIVES, QUIET
from grass.cli.parsing.options import BROKER, Command, Option
from grass.cli.printing.prefixed_output import Unchanged, for_stdout
from grass.cli.printing.streams import warn
from grass.cli.printing.wording import ENDED_STATES, UNSTARTED, ended
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError, NotFound, Unreachable, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.cli.parsing.options import Values
    from grass.client.json_codec import Document

PTY = Option("--pty", about="give the job this terminal: keys, size, Ctrl-C")
NO_STDIN = Option("--no-stdin", about="do not pass on what is piped into it")
EACH = Option("--each", about="run each word as a job with a GPU of its own")
OPTIONS = (*job_options.OPTIONS, PTY, NO_STDIN, EACH, BROKER, QUIET, NO_DIRECTIVES)
_FIRST_LOOK_S = 0.25
_LONGEST_LOOK_S = 5.0
_PATIENCE_S = 1.0
_RETRY_S = 0.02


def run(words: list[str]) -> int:
    """Run a job in the foreground, or with `--each` several."""
    line = EnqueueLine(OPTIONS, words)
    if line.values.has("each"):
        from grass.cli.commands.run_each import run_each

        return run_each(OPTIONS, words)
    return run_line(line)


def run_line(line: EnqueueLine) -> int:
    """Run the job of a command line that was read."""
    interrupts = Interrupts()
    try:
        with Client(broker=line.values.broker) as client:
            find_queue(client, line)
            job = _run_job(client, line, interrupts)
            interrupts.wait_for_cancel()
            return exit_code(job)
    except Detached:
        return interrupts.detach()
    except HungUp:
        return interrupts.hang_up()
    except BrokenPipeError:
        interrupts.detach()
        raise
    except OSError:
        if not interrupts.has_terminal:
            raise
        # The terminal is closed, and the signal that says so is on its way.
        return interrupts.hang_up()
    except UsageError:
        raise
    except (GrassError, Broken) as error:
        warn(str(error))
        interrupts.warn_if_unanswered()
        return GRASS_FAILED


def _run_job(client: Client, line: EnqueueLine, interrupts: Interrupts) -> Document:
    given = _given_input(line.values)
    interrupts.listen()
    reply = enqueue_line(client, line, given.fields(line.values))
    give_hint(reply, line.values)
    talk = _ignore if line.values.has("quiet") else given.talk
    client.outage.tell = talk
    interrupts.take(client, reply["first"])
    given.begin(client, reply["first"], interrupts)
    try:
        shown = for_stdout(raw=line.values.has("pty"))
        return _follow(client, reply["first"], talk, shown)
    except Detached:
        given.abandon()
        raise
    finally:
        given.end()


class NoInput:
    """What a job without stdin is given; `job_input` has the other kinds."""

    def fields(self, values: Values) -> Document:
        """Return the fields of a job that is given this."""
        return {}

    def talk(self, text: str) -> None:
        """Print a line on stderr."""
        warn(text)

    def begin(self, client: Client, job: int, interrupts: Interrupts) -> None:
        """Begin to pass on what comes."""

    def abandon(self) -> None:
        """Leave the job to itself."""

    def end(self) -> None:
        """Stop, and leave the terminal as it was."""


def _given_input(values: Values) -> NoInput:
    """Return what is passed on to the job; most calls import nothing for that."""
    if not values.has("pty"):
        try:
            kind = os.fstat(0).st_mode
        except OSError:
            return NoInput()
        if stat.S_ISCHR(kind) or values.has("no_stdin"):
            return NoInput()
    from grass.cli.commands.job_input import chosen

    return chosen(values)


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


def _follow(
    client: Client, id: int, talk: Callable[[str], None], shown: Unchanged
) -> Document:
    """Copy the output of one attempt after the other; return the job at its end."""
    number = 1
    while True:
        with Notices(client, id, talk):
            copied = _copy(client, id, number, talk, shown)
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


def _copy(
    client: Client,
    id: int,
    attempt: int,
    talk: Callable[[str], None],
    shown: Unchanged,
) -> bool:
    """Copy what an attempt writes until it has ended; tell whether it has output."""
    try:
        following = client.output(
            id, follow=True, attempt=attempt, on_away=lambda job: talk(away(job))
        )
        for piece in following:
            sys.stdout.buffer.write(shown.feed(piece))
            sys.stdout.buffer.flush()
        sys.stdout.buffer.write(shown.end())
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
        "its end; a second one leaves it to itself. What is piped into it is passed on "
        "to the job's stdin; in a loop that reads lines, give --no-stdin. With --pty "
        "the job has this terminal, and Enter ~ . leaves it to itself. The words are "
        "those of `grass enqueue`. With --each every word is a command of its own with "
        "one GPU, and the exit code is 1 if any failed."
    ),
    options=OPTIONS,
    examples=(
        "grass run -g 1 -- python train.py",
        "grass run --time-limit 10m q1 python test.py",
        "tar c data | grass run --worker desk2 -- tar x",
        "grass run -g 1 --pty -- python",
        "grass run --each 'python a.py' 'python b.py'",
    ),
    run=run,
)
