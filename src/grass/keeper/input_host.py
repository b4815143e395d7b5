"""The main process of a job that is given input: it starts the job's program.

A daemon may be killed at any time, so it cannot be what holds a job's stdin open. This
program is, under the keeper like any job: it makes a pipe or a terminal, starts the
real program on it, takes input from a Unix socket in the keeper's folder, and ends as
the program does, with the same exit code or by the same signal. With a pipe the program
writes to the output file itself; what it writes to a terminal is copied there.

It is run as a file, like the keeper, and imports nothing but the standard library and
`input_pieces`, the form of the messages.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(__file__))))

from grass.keeper.input_pieces import ANSWER_S, LARGEST_PIECE, Pending, Sender

if TYPE_CHECKING:
    from grass.keeper.input_pieces import Piece

_HANG_UP_MS = 200
_AWAITED = {signal.SIGCHLD, signal.SIGTERM}
_END_OF_FILE = b"\x04"
_ERASES_UTF8 = 0x4000
_FAILED = 125
_CANNOT_RUN = 126


class Program(NamedTuple):
    """The job's program, and the descriptors by which it is reached."""

    pid: int
    stdin: int
    terminal: int | None
    """Where what it writes is read from, if that is a terminal."""


def main(words: list[str]) -> None:
    """Run the program that the words name; never returns."""
    path, kind, rows, columns, program, *argv = words
    try:
        listener = _listen(path)
    except OSError as error:
        _complain(f"no input can be given to this job: {error}")
        os._exit(_FAILED)
    environment = _environment()
    _hold_signals()
    start = _on_terminal if kind == "pty" else _on_pipe
    started = start((int(rows), int(columns)), (program, argv, environment))
    status = Host(listener, started).run()
    with suppress(OSError):
        os.unlink(path)
    _end_like(status)


def _listen(path: str) -> socket.socket:
    """Listen at a path of any length, for the user alone."""
    folder, name = os.path.split(path)
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    before = os.umask(0o177)
    try:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with suppress(FileNotFoundError):
            os.unlink(path)
        listener.bind(f"/proc/self/fd/{descriptor}/{name}")
        listener.listen(8)
        listener.setblocking(False)
    finally:
        os.umask(before)
        os.close(descriptor)
    return listener


def _environment() -> dict[bytes, bytes]:
    """Read the environment as it was given: Python may have added to its own."""
    with open("/proc/self/environ", "rb") as file:
        pairs = (one.partition(b"=") for one in file.read().split(b"\0"))
        return {name: value for name, equals, value in pairs if equals}


Executable = tuple[str, list[str], dict[bytes, bytes]]


def _on_pipe(_window: tuple[int, int], executable: Executable) -> Program:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    pid = os.fork()
    if pid == 0:
        _become(executable, [reader])
    os.close(reader)
    return Program(pid, writer, None)


def _on_terminal(window: tuple[int, int], executable: Executable) -> Program:
    # This end stays open: without it the terminal would be gone for a moment whenever
    # the program closes its own.
    master, slave = os.openpty()
    os.set_blocking(master, False)
    modes = termios.tcgetattr(slave)
    modes[0] |= _ERASES_UTF8
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    _resize(master, window)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        _become(executable, [slave, slave, slave])
    return Program(pid, master, master)


def _become(executable: Executable, descriptors: list[int]) -> None:
    """Turn this forked child into the program; never returns."""
    program, argv, environment = executable
    try:
        for target, source in enumerate(descriptors):
            os.dup2(source, target)
        for number in signal.valid_signals():
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execve(program, argv, environment)
    except OSError as error:
        _complain(f"could not start: {program}: {error.strerror}")
    finally:
        os._exit(_CANNOT_RUN)


def _complain(text: str) -> None:
    with suppress(OSError):
        os.write(2, f"grass: {text}\n".encode("utf-8", "backslashreplace"))


def _resize(terminal: int, window: tuple[int, int]) -> None:
    with suppress(OSError, struct.error):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *window, 0, 0))


def _end_like(status: int) -> None:
    """End as the program did; never returns."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-code})
        # Not to the process: the thread that waits for signals might take it.
        signal.pthread_kill(threading.get_ident(), -code)
    os._exit(code if code >= 0 else 128 - code)


class Host:
    """The loop between the socket, the program and the output."""

    def __init__(self, listener: socket.socket, program: Program) -> None:
        self._listener = listener
        self._program = program
        self._pending = Pending()
        self._senders: dict[int, Sender] = {}
        self._waiting: dict[int, tuple[Piece, bytes]] = {}
        self._wakeup = _held_signals()
        self._stdin: int | None = program.stdin
        self._ending = False
        """Whether the program was asked to end, and has a terminal."""

    def run(self) -> int:
        """Pass input and output on until the program ends; return its status."""
        while True:
            ready = self._poll()
            for descriptor, _ in ready:
                self._ready(descriptor)
            if self._ending and not ready:
                self._hang_up()
            self._write()
            self._answer_waiting()
            pid, status = os.waitpid(self._program.pid, os.WNOHANG)
            if pid:
                self._copy_rest()
                return status

    def _poll(self) -> list[tuple[int, int]]:
        poller, terminal = select.poll(), self._program.terminal
        for descriptor in (self._wakeup, self._listener.fileno()):
            poller.register(descriptor, select.POLLIN)
        for descriptor in self._senders.keys() - self._waiting.keys():
            poller.register(descriptor, select.POLLIN)
        writing = bool(self._pending.data) and self._stdin is not None
        if terminal is not None:
            events = select.POLLIN | (select.POLLOUT if writing else 0)
            poller.register(terminal, events)
        elif writing and self._stdin is not None:
            poller.register(self._stdin, select.POLLOUT)
        if self._ending:
            return poller.poll(_HANG_UP_MS)
        return poller.poll(1000 if self._waiting else None)

    def _ready(self, descriptor: int) -> None:
        if descriptor == self._wakeup:
            if signal.SIGTERM in os.read(self._wakeup, 64):
                self._ending = self._program.terminal is not None
                self._hang_up()
        elif descriptor == self._listener.fileno():
            with suppress(OSError):
                channel, _ = self._listener.accept()
                channel.setblocking(False)
                self._senders[channel.fileno()] = Sender(channel)
        elif descriptor == self._program.terminal:
            self._copy()
        elif descriptor in self._senders:
            self._receive(descriptor)

    def _receive(self, descriptor: int) -> None:
        try:
            received = self._senders[descriptor].read()
        except BlockingIOError:
            return
        except OSError:
            self._drop(descriptor)
            return
        if received is not None:
            window = received[0].window
            if window is not None and self._program.terminal is not None:
                _resize(self._program.terminal, window)
            self._waiting[descriptor] = received

    def _answer_waiting(self) -> None:
        late = time.monotonic() - ANSWER_S
        for descriptor, (piece, data) in list(self._waiting.items()):
            sender = self._senders[descriptor]
            if self._pending.take(piece, data) or sender.since < late:
                sender.answer(self._pending.taken(piece.sender))
                self._drop(descriptor)
        self._write()

    def _drop(self, descriptor: int) -> None:
        self._waiting.pop(descriptor, None)
        self._senders.pop(descriptor).channel.close()

    def _write(self) -> None:
        """Give the program what it can read now, and the end after the last of it."""
        pending, stdin = self._pending, self._stdin
        if stdin is None:
            return
        try:
            while pending.data:
                del pending.data[: os.write(stdin, pending.data)]
            if pending.ended:
                self._end_input(stdin)
        except BlockingIOError:
            pass
        except OSError:
            # The program has closed its stdin.
            pending.closed = True
            pending.data.clear()
            self._stdin = None
            os.close(stdin)

    def _end_input(self, stdin: int) -> None:
        self._stdin = None
        if self._program.terminal is None:
            os.close(stdin)
        else:
            os.write(stdin, _END_OF_FILE)

    def _copy(self) -> bool:
        """Copy a piece of what the program wrote; tell whether there was one."""
        terminal = self._program.terminal
        if terminal is None:
            return False
        try:
            data = os.read(terminal, LARGEST_PIECE)
        except OSError:
            return False
        with suppress(OSError):
            while data:
                data = data[os.write(1, data) :]
        return True

    def _copy_rest(self) -> None:
        while self._copy():
            """Until nothing is left; what others still write is not waited for."""

    def _hang_up(self) -> None:
        """End a shell that ignores SIGTERM, as interactive ones do.

        It is done again until the shell is gone: one that is about to read from its
        terminal notes a signal and reads on.
        """
        if self._ending and _ignores_sigterm(self._program.pid):
            with suppress(OSError):
                os.kill(self._program.pid, signal.SIGHUP)


def _ignores_sigterm(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return False
    ignored = next((line for line in lines if line.startswith(b"SigIgn:")), b":0")
    return bool(int(ignored.partition(b":")[2], 16) >> (signal.SIGTERM - 1) & 1)


def _hold_signals() -> None:
    """Hold SIGCHLD and SIGTERM back, and ignore all others.

    They are for the program, and this process must not end before it. They have no
    handler either: what is sent only to processes that have one must not end here.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    for number in signal.valid_signals() - _AWAITED:
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)


def _held_signals() -> int:
    """Return a pipe in which the signals that are held back arrive, as bytes."""
    reader, writer = os.pipe()

    def pass_on() -> None:
        while True:
            os.write(writer, bytes([signal.sigwait(_AWAITED)]))

    threading.Thread(target=pass_on, daemon=True).start()
    return reader


if __name__ == "__main__":
    main(sys.argv[1:])
