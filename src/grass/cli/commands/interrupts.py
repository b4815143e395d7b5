"""What ends `grass run` before its job ends: Ctrl-C, SIGTERM, a closed terminal.

The handler of Ctrl-C cancels the job in a thread and over a connection of its own, so
that following goes on until the job has ended; the next Ctrl-C detaches from the job.
Where the job has the terminal, Ctrl-C is a key like any other.
"""

from __future__ import annotations

import signal
import threading
import time
from _thread import start_new_thread

from grass.cli.printing.streams import warn
from grass.client.client import Client
from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain
from grass.errors import GrassError

DETACHED = 130
HUNG_UP = 129
_PATIENCE_S = 1.0
_RETRY_S = 0.1


class Detached(Exception):
    """The user detaches from the job."""


class HungUp(Exception):
    """The terminal is closed."""


class Interrupts:
    """The handler of Ctrl-C: it cancels the job, and the next one detaches from it."""

    def __init__(self) -> None:
        self._job: int | None = None
        self._client: Client | None = None
        self._count = 0
        self._asked = False
        self.has_terminal = False
        """Whether the job has the terminal of this command."""
        self._answered = threading.Event()

    def listen(self) -> None:
        """Install the handler, unless Ctrl-C is ignored or handled already."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupted)

    def listen_to_terminal(self) -> None:
        """Have a closed terminal end the job, and SIGTERM detach from it."""
        self.has_terminal = True
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            signal.signal(signal.SIGHUP, _hung_up)
        signal.signal(signal.SIGTERM, _detached)

    def end_main(self, *, hang_up: bool) -> None:
        """Have the main thread detach from the job, or end it; called in another one.

        Python may drop a signal that comes right before the main thread goes to sleep,
        so it is sent again until the command ends.
        """
        number = signal.SIGHUP if hang_up else signal.SIGTERM
        while True:
            signal.pthread_kill(threading.main_thread().ident or 0, number)
            time.sleep(_RETRY_S)

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

    def hang_up(self) -> int:
        """End the job as a closed terminal ends a shell: with SIGHUP."""
        client, job = self._client, self._job
        try:
            if client is not None:
                with client.beside() as aside:
                    aside.cancel([str(job)], signal=signal.SIGHUP)
        except (GrassError, Broken):
            """No terminal is left to print it on."""
        return HUNG_UP

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


def _hung_up(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise HungUp


def _detached(number: int, _frame: object) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise Detached
