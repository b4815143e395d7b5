"""What `grass run` gives to a job: what is piped into it, or the keys of a terminal.

A thread reads stdin once the job runs, and sends it piece by piece over a connection of
its own; each piece is answered when the job has taken it. Offsets make a piece safe to
repeat, so a restart of the daemon loses nothing and repeats nothing. A terminal is raw
while the job has it and is restored in every case; Ctrl-C goes to the job like any key.
Enter, `~` and `.` detach from the job, as they do in ssh: no program needs them often.
"""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import termios
import threading
import time
import tty

from grass.cli.commands.run import NoInput
from grass.cli.parsing.job_options import variables
from grass.cli.printing.streams import warn
from grass.client.connection import Broken
from grass.client.threads import CtrlCForMain, call_within
from grass.errors import GrassError, Unreachable, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from grass.cli.commands.interrupts import Interrupts
    from grass.cli.parsing.options import Values
    from grass.client.client import Client
    from grass.client.json_codec import Document

STDIN = 0
PIECE = 64 * 1024
LOOK_S = 1.0
"""How often to ask whether a worker is back."""
_PATIENCE_S = 1.0
_NEW_LINE = b"\r\n"


def chosen(values: Values) -> NoInput:
    """Return what is given to the job."""
    if values.has("pty"):
        if values.has("no_stdin"):
            raise UsageError("--pty and --no-stdin exclude each other")
        if not os.isatty(STDIN):
            raise UsageError(
                "this needs a terminal, and stdin is not one",
                "`grass run` without --pty passes on what is piped in",
            )
        return TerminalInput()
    if values.has("no_stdin") or not _has_something():
        return NoInput()
    if values.has("retries") or values.has("retry_lost"):
        warn("stdin is not passed on: a job that runs again would not get it again")
        return NoInput()
    return PassedInput()


def _has_something() -> bool:
    """Tell whether stdin is a pipe or a file that is not at its end."""
    mode = os.fstat(STDIN).st_mode
    if stat.S_ISREG(mode):
        return os.lseek(STDIN, 0, os.SEEK_CUR) < os.fstat(STDIN).st_size
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return False
    poller = select.poll()
    poller.register(STDIN, select.POLLIN)
    events = dict(poller.poll(0)).get(STDIN, select.POLLIN)
    return bool(events & select.POLLIN)


class InputSender:
    """Sends input to one job, each piece until all of it was taken."""

    def __init__(self, client: Client, job: int) -> None:
        self._client = client
        self._job = job
        self._name = os.urandom(8).hex()
        self._offset = 0

    def send(
        self,
        data: bytes = b"",
        *,
        end: bool = False,
        window: tuple[int, int] | None = None,
    ) -> bool:
        """Give the job a piece, once it runs; tell whether it takes more."""
        while True:
            try:
                reply = self._client.write_input(
                    *(self._job, self._name, self._offset, data),
                    end=end,
                    window=window,
                )
            except Unreachable:
                time.sleep(LOOK_S)
                continue
            data = data[reply["offset"] - self._offset :]
            self._offset = reply["offset"]
            if reply["closed"]:
                return False
            if not data and not end:
                return True


class PassedInput(NoInput):
    """What is piped into the command, passed on until it ends or the job does."""

    def __init__(self) -> None:
        self._sender: InputSender | None = None
        self._over = False

    def fields(self, values: Values) -> Document:
        """Return the fields of a job that is given this."""
        return {"stdin": "pipe"}

    def begin(self, client: Client, job: int, interrupts: Interrupts) -> None:
        """Begin to pass on what comes."""
        with CtrlCForMain():
            thread = threading.Thread(
                target=self._run, args=(client, job, interrupts), daemon=True
            )
            thread.start()

    def end(self) -> None:
        """Stop; the thread ends with the process, as it may wait for stdin."""
        self._over = True

    def abandon(self) -> None:
        """End the stdin of a job that is left to itself: it would wait for ever."""
        sender = self._sender
        if sender is not None:
            try:
                call_within(_PATIENCE_S, lambda: sender.send(end=True))
            except (GrassError, Broken, OSError):
                return

    def _run(self, client: Client, job: int, interrupts: Interrupts) -> None:
        try:
            with client.beside() as own:
                self._sender = InputSender(own, job)
                if self._sender.send():
                    self._pass_all(self._sender, job, interrupts)
        except Broken:
            return  # The main thread gets the same error.
        except (GrassError, OSError) as error:
            if not self._over:
                self.talk(f"no more input for job {job}: {error}")

    def _pass_all(self, sender: InputSender, job: int, interrupts: Interrupts) -> None:
        while data := os.read(STDIN, PIECE):
            if not sender.send(data):
                return
        sender.send(end=True)


class TerminalInput(PassedInput):
    """The keys of a terminal, which is the job's while it runs."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._modes: list[Any] | None = None
        self._wakeup = -1
        """A pipe in which signals arrive, whichever thread they interrupt."""

    def fields(self, values: Values) -> Document:
        """Return the fields of a job that has this terminal."""
        fields: Document = {"stdin": "pty", "window": _window()}
        if "TERM" in os.environ:
            # It is sent to other machines as well, where no environment is.
            given = variables(values.all("env"))
            fields["env"] = {"TERM": os.environ["TERM"], **given}
        return fields

    def talk(self, text: str) -> None:
        """Print a line on stderr, also while the terminal is raw."""
        if self._modes is None:
            warn(text)
        else:
            sys.stderr.write("\r\n")
            warn(text)
            sys.stderr.write("\r")

    def begin(self, client: Client, job: int, interrupts: Interrupts) -> None:
        """Begin to pass on keys, and changes of the window's size."""
        interrupts.listen_to_terminal()
        self._wakeup, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGWINCH, lambda *_: None)
        super().begin(client, job, interrupts)

    def end(self) -> None:
        """Stop, and restore the terminal."""
        signal.set_wakeup_fd(-1)
        with self._lock:
            super().end()
            if self._modes is not None:
                try:
                    termios.tcsetattr(STDIN, termios.TCSADRAIN, self._modes)
                except termios.error:
                    """It is closed."""
                self._modes = None

    def abandon(self) -> None:
        """Leave the terminal of the job as it is."""

    def _pass_all(self, sender: InputSender, job: int, interrupts: Interrupts) -> None:
        with self._lock:
            if self._over:
                return
            self._modes = termios.tcgetattr(STDIN)
            tty.setraw(STDIN, termios.TCSADRAIN)
        # The keys that it names work only now.
        warn(f"job {job} has this terminal; Enter ~ . leaves it to itself")
        sys.stderr.write("\r")
        keys, more = DetachKeys(), sender.send(window=_window())
        while more:
            ready, _, _ = select.select([STDIN, self._wakeup], [], [])
            if self._wakeup in ready:
                os.read(self._wakeup, PIECE)
                more = sender.send(window=_window())
            if STDIN in ready:
                typed = _keys()
                more = sender.send(keys.passed(typed))
                if keys.detached or not typed:
                    interrupts.end_main(hang_up=not typed)
                    return


class DetachKeys:
    """Finds the keys that detach, `~` and `.` after Enter, among those typed."""

    def __init__(self) -> None:
        self.detached = False
        self._begins_line = True
        self._tilde = False

    def passed(self, data: bytes) -> bytes:
        """Return what goes to the job; `~~` after Enter is one tilde."""
        passed = bytearray()
        for key in data:
            if self.detached:
                break
            if self._tilde:
                self._tilde = False
                self.detached = key == ord(".")
                if not self.detached:
                    passed += b"~" if key == ord("~") else bytes((ord("~"), key))
            elif self._begins_line and key == ord("~"):
                self._tilde = True
                continue
            else:
                passed.append(key)
            self._begins_line = key in _NEW_LINE
        return bytes(passed)


def _keys() -> bytes:
    """Read what was typed; nothing if the terminal is closed."""
    try:
        return os.read(STDIN, PIECE)
    except OSError:
        return b""


def _window() -> tuple[int, int]:
    """Return the rows and columns of the terminal."""
    columns, rows = os.get_terminal_size(STDIN)
    return max(1, rows), max(1, columns)
