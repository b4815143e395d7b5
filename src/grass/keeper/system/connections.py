"""The daemons that are connected: what they say, and what waits to be sent to them.

What is to be sent is only queued here; the loop says when it may go out, as nothing
leaves before the records were written. News that are not urgent may wait a moment.
"""

from __future__ import annotations

import os
import select
import socket
from typing import TYPE_CHECKING

from grass.keeper.core import events
from grass.keeper.crash_points import crash_point
from grass.keeper.system.clocks import boot_s
from grass.keeper.wire import (
    BadMessage,
    BrokenLine,
    Connection,
    decode,
    encode,
    event_of,
    peer_uid,
)

if TYPE_CHECKING:
    from grass.keeper.core import effects
    from grass.keeper.system.adoption import Feed
    from grass.keeper.system.poller import Waiting
    from grass.keeper.system.processes import Jobs

# The news of a start waits this long for that of an exit: a short job then costs the
# daemon one wake-up and one commit instead of two.
_HOLD_S = 0.002
SOCKET_NAME = "keeper.sock"


class Connections:
    """Every connection to a daemon."""

    def __init__(
        self, listener: socket.socket, waiting: Waiting, jobs: Jobs, feed: Feed
    ) -> None:
        """Take over the listening socket; what is said is told to `feed`."""
        self._listener = listener
        self._waiting = waiting
        self._jobs = jobs
        self._feed = feed
        self._open: dict[int, Connection] = {}
        self._urgent = False
        self.hold_until: float | None = None
        waiting.watch(listener.fileno(), self._accept)

    def listen_on(self, listener: socket.socket) -> None:
        """Take over another listening socket: nobody finds the one before any more."""
        self._waiting.unwatch(self._listener.fileno())
        self._listener.close()
        self._listener = listener
        self._waiting.watch(listener.fileno(), self._accept)

    @property
    def knocking(self) -> bool:
        """Tell whether a daemon is at the door that was not let in yet."""
        return bool(select.select([self._listener], [], [], 0)[0])

    @property
    def may_hold(self) -> bool:
        """Tell whether all that waits to be sent may go on waiting."""
        if self._urgent or self.hold_until is None:
            return False
        return boot_s() < self.hold_until

    def _accept(self) -> None:
        try:
            channel = self._listener.accept()[0]
        except OSError:
            return
        # The socket's mode keeps others out; a folder that was opened up does not.
        if peer_uid(channel) not in (0, os.geteuid()):
            channel.close()
            return
        connection = Connection(channel)
        self._open[connection.descriptor] = connection
        self._jobs.spare(connection.peer)
        self._waiting.watch(connection.descriptor, lambda: self._receive(connection))
        self._feed(events.Opened(connection.descriptor))

    def _receive(self, connection: Connection) -> None:
        try:
            lines = connection.receive()
            for line in lines or ():
                self._take(connection, decode(line))
        except BrokenLine as error:
            connection.put(encode({"e": "error", "message": str(error)}))
            connection.flush()
            lines = None
        if lines is None:
            self._drop(connection)

    def _take(self, connection: Connection, message: events.Entry) -> None:
        try:
            event = event_of(message, connection.descriptor)
        except BadMessage as error:
            answer = {"e": "error", "message": str(error), "id": error.id}
            connection.put(encode(answer))
            self._urgent = True
        else:
            self._feed(event)

    def _drop(self, connection: Connection) -> None:
        if self._open.pop(connection.descriptor, None) is None:
            return
        self._waiting.unwatch(connection.descriptor)
        if all(other.peer != connection.peer for other in self._open.values()):
            self._jobs.spare_no_more(connection.peer)
        connection.close()
        self._feed(events.Closed(connection.descriptor))

    def flush(self) -> None:
        """Send what waits."""
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
                self._waiting.also_for_room(connection.descriptor, connection.writing)
            crash_point("keeper.after-publish")

    def publish(self, line: bytes, *, urgent: bool) -> None:
        """Have a line sent to all who listen."""
        if urgent:
            self._urgent = True
        elif self.hold_until is None:
            self.hold_until = boot_s() + _HOLD_S
        for connection in self._open.values():
            if connection.listening:
                connection.put(line)

    def tell(self, effect: effects.Tell) -> None:
        """Have an entry sent to all who listen, soon."""
        self.publish(encode(effect.entry), urgent=True)

    def reply(self, effect: effects.Reply) -> None:
        """Have an entry sent to one."""
        self._urgent = True
        connection = self._open.get(effect.connection)
        if connection is not None:
            connection.put(encode(effect.entry))

    def greet(self, effect: effects.Greet) -> None:
        """Have an entry sent to one who listens from now on."""
        self._urgent = True
        connection = self._open.get(effect.connection)
        if connection is not None:
            connection.greet(encode(effect.entry))


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
