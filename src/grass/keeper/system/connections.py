"""The connected daemons: what they send, and what is queued for them.

Entries are only queued here; the loop decides when they are sent, as nothing is sent
before the records are written. Entries that are not urgent may wait a moment.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from typing import TYPE_CHECKING

from grass.keeper.alike_starts import LIKE, read_like
from grass.keeper.codec import BadMessage, BrokenLine, decode_object, encode, verb_of
from grass.keeper.core import keeper_events as events
from grass.keeper.crash_points import crash_point
from grass.keeper.protocol import ErrorEntry, StartVerb
from grass.keeper.system.poller import boot_s

if TYPE_CHECKING:
    from grass.keeper.core import effects
    from grass.keeper.protocol import Verb
    from grass.keeper.system.poller import Feed, Poller
    from grass.keeper.system.processes import JobProcesses

# The entry of a start waits this long for that of an exit: a short job then costs the
# daemon one wake-up and one commit instead of two. Exits of very short jobs, with many
# behind them, wait for each other.
_HOLD_S = 0.004
LINE_LIMIT = 64 << 20
BACKLOG_LIMIT = 16 << 20
_CHUNK = 1 << 16
SOCKET_NAME = "keeper.sock"


class Connections:
    """Every connection to a daemon."""

    def __init__(
        self,
        listener: socket.socket,
        poller: Poller,
        jobs: JobProcesses,
        feed: Feed,
    ) -> None:
        """Take over the listening socket; verbs go to `feed`."""
        self._listener = listener
        self._poller = poller
        self._jobs = jobs
        self._feed = feed
        self._open: dict[int, DaemonConnection] = {}
        self._urgent = False
        self.hold_until: float | None = None
        poller.watch(listener.fileno(), self._accept)

    def listen_on(self, listener: socket.socket) -> None:
        """Take over another listening socket: the file of the old one is gone."""
        self._poller.unwatch(self._listener.fileno())
        self._listener.close()
        self._listener = listener
        self._poller.watch(listener.fileno(), self._accept)

    @property
    def any_unaccepted(self) -> bool:
        """Tell whether a connection waits to be accepted."""
        return bool(select.select([self._listener], [], [], 0)[0])

    @property
    def may_hold(self) -> bool:
        """Tell whether all that is queued may wait longer."""
        if self._urgent or self.hold_until is None:
            return False
        return boot_s() < self.hold_until

    def _accept(self) -> None:
        try:
            channel = self._listener.accept()[0]
        except OSError:
            return
        # The socket's mode excludes other users, unless it was changed.
        if _peer(channel)[1] not in (0, os.geteuid()):
            channel.close()
            return
        connection = DaemonConnection(channel)
        self._open[connection.descriptor] = connection
        self._jobs.exclude(connection.peer)
        self._poller.watch(connection.descriptor, lambda: self._receive(connection))
        self._feed(events.Opened(connection.descriptor))

    def _receive(self, connection: DaemonConnection) -> None:
        try:
            lines = connection.receive()
            for line in lines or ():
                self._handle(connection, line)
        except BrokenLine as error:
            connection.put(encode(ErrorEntry(str(error))))
            connection.flush()
            lines = None
        if lines is None:
            self._drop(connection)

    def _handle(self, connection: DaemonConnection, line: bytes) -> None:
        try:
            verb = connection.verb_in(line)
        except BadMessage as error:
            connection.put(encode(ErrorEntry(str(error), error.id, error.name)))
            self._urgent = True
        else:
            self._feed(events.VerbReceived(connection.descriptor, verb))

    def _drop(self, connection: DaemonConnection) -> None:
        if self._open.pop(connection.descriptor, None) is None:
            return
        self._poller.unwatch(connection.descriptor)
        if all(other.peer != connection.peer for other in self._open.values()):
            self._jobs.include(connection.peer)
        connection.close()
        self._feed(events.Closed(connection.descriptor))

    def flush(self) -> None:
        """Send what is queued."""
        self._urgent = False
        self.hold_until = None
        for connection in list(self._open.values()):
            if not connection.backlog and not connection.writing:
                continue
            crash_point("keeper.before-publish")
            if not connection.flush():
                self._drop(connection)
            elif bool(connection.backlog) != connection.writing:
                connection.writing = not connection.writing
                self._poller.watch_writable(connection.descriptor, connection.writing)
            crash_point("keeper.after-publish")

    def publish(self, line: bytes, *, urgent: bool) -> None:
        """Queue a line for all connections that said hello."""
        if urgent:
            self._urgent = True
        elif self.hold_until is None:
            self.hold_until = boot_s() + _HOLD_S
        for connection in self._open.values():
            if connection.listening:
                connection.put(line)

    def tell(self, effect: effects.Tell) -> None:
        """Queue an entry for all connections that said hello."""
        self.publish(encode(effect.entry), urgent=True)

    def reply(self, effect: effects.Reply) -> None:
        """Queue an entry for one connection."""
        self._urgent = True
        connection = self._open.get(effect.connection)
        if connection is not None:
            connection.put(encode(effect.entry))

    def send_hello(self, effect: effects.SendHello) -> None:
        """Queue an entry for one connection, and all entries from now on."""
        self._urgent = True
        connection = self._open.get(effect.connection)
        if connection is not None:
            connection.send_hello(encode(effect.entry))


def _peer(channel: socket.socket) -> tuple[int, int]:
    """Return the pid and the user at the other end, as the kernel knows them."""
    size = struct.calcsize("3i")
    raw = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    pid, uid, _ = struct.unpack("3i", raw)
    return pid, uid


class DaemonConnection:
    """One connection of a daemon: lines in, entries out; it never blocks."""

    def __init__(self, channel: socket.socket) -> None:
        channel.setblocking(False)
        self.descriptor = channel.fileno()
        self.peer = _peer(channel)[0]
        self.listening = False
        self.writing = False
        self._channel = channel
        self._received = bytearray()
        self._unsent = bytearray()
        self._allowed = BACKLOG_LIMIT
        self._last_start: StartVerb | None = None
        """The last one that was sent as a whole."""

    def receive(self) -> list[bytes] | None:
        """Return the complete lines received; None at the end of the stream."""
        known = len(self._received)
        ended = not self._read_all()
        lines: list[bytearray] = []
        # Only new bytes are searched, or a long line would cost its square.
        if self._received.find(b"\n", known) >= 0:
            *lines, self._received = self._received.split(b"\n")
        if len(self._received) > LINE_LIMIT:
            raise BrokenLine("line too long")
        if ended and not lines:
            return None
        return [bytes(line) for line in lines if line]

    def _read_all(self) -> bool:
        while True:
            try:
                chunk = self._channel.recv(_CHUNK)
            except (BlockingIOError, InterruptedError):
                return True
            except OSError:
                return False
            self._received += chunk
            if len(chunk) < _CHUNK or len(self._received) > LINE_LIMIT:
                return bool(chunk)

    def verb_in(self, line: bytes) -> Verb:
        """Read a line; raises BrokenLine or BadMessage."""
        message = decode_object(line)
        if message.get("v") == LIKE:
            return read_like(message, self._last_start)
        verb = verb_of(message)
        if isinstance(verb, StartVerb):
            self._last_start = verb
        return verb

    def put(self, data: bytes) -> None:
        """Queue bytes for the next flush."""
        self._unsent += data

    def send_hello(self, data: bytes) -> None:
        """Queue the full state, whose size does not count as backlog."""
        self._allowed = BACKLOG_LIMIT + len(data)
        self._unsent += data
        self.listening = True

    def flush(self) -> bool:
        """Send what the socket accepts; False if the connection must be dropped."""
        if self._unsent:
            try:
                sent = self._channel.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                return False
            del self._unsent[:sent]
        return len(self._unsent) <= self._allowed

    @property
    def backlog(self) -> int:
        """Return how many bytes are not sent yet."""
        return len(self._unsent)

    def close(self) -> None:
        """Close the socket."""
        self._channel.close()


def listen(directory: str) -> socket.socket:
    """Listen under a relative name: a full path may be too long for a socket."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.chdir(directory)
    try:
        if os.path.lexists(SOCKET_NAME):
            os.unlink(SOCKET_NAME)
        listener.bind(SOCKET_NAME)
        os.chmod(SOCKET_NAME, 0o600)
    finally:
        os.chdir("/")
    listener.setblocking(False)
    listener.listen(64)
    return listener
