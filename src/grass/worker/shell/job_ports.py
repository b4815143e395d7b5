"""A free TCP port for every job with a GPU, which it finds as `MASTER_PORT`.

No two jobs of a machine get the same one. Those of this daemon are remembered, and
after a restart read from the keeper; between the daemons of several users an abstract
socket named after the port tells that it is given out: like the ports themselves such
names belong to the network namespace, and they vanish with the process. Ports that
something else uses are found out by binding them. Ports are taken in turn, so that one
is used again only after all others.
"""

import errno
import os
import socket
from collections.abc import Callable

from grass.keeper.protocol import HelloEntry

FIRST, LAST = 20_000, 29_399
"""Below the ports of outgoing connections, and those that frameworks use by default."""
MOST_TRIED = 200


class JobPorts:
    """The ports that jobs have, by attempt."""

    def __init__(self, is_running: Callable[[str], bool]) -> None:
        """`is_running` tells of an attempt whether it still has its port."""
        self._is_running = is_running
        self._held: dict[str, tuple[int, socket.socket | None]] = {}
        # Two daemons that begin at different places seldom try the same port.
        self._next = FIRST + os.getpid() * 61 % (LAST - FIRST + 1)

    def adopt(self, hello: HelloEntry) -> None:
        """Remember the ports of attempts that a daemon before this one started."""
        for state in hello.attempts:
            port = state.meta.port
            if port and state.state != "exited" and state.id not in self._held:
                self._held[state.id] = port, _named(port)

    def take(self, attempt: str) -> int:
        """Return a port for an attempt, always the same one; 0: there is none."""
        if attempt in self._held:
            return self._held[attempt][0]
        self._drop_ended()
        taken = {port for port, _ in self._held.values()}
        for _ in range(MOST_TRIED):
            port, self._next = self._next, self._next + 1
            if self._next > LAST:
                self._next = FIRST
            if port in taken or not _is_free(port):
                continue
            name = _named(port)
            if name is not None:
                self._held[attempt] = port, name
                return port
        return 0

    def close(self) -> None:
        """Give up the names; the jobs go on and use their ports."""
        for _, name in self._held.values():
            if name is not None:
                name.close()
        self._held.clear()

    def _drop_ended(self) -> None:
        for attempt, (_, name) in list(self._held.items()):
            if not self._is_running(attempt):
                del self._held[attempt]
                if name is not None:
                    name.close()


def _named(port: int) -> socket.socket | None:
    """Return the socket that tells others of a port; None: another one has it."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        name.bind(f"\0grass-port-{port}")
    except OSError:
        name.close()
        return None
    return name


def _is_free(port: int) -> bool:
    """Return whether a job could listen on a port, with IPv4 or IPv6."""
    return all(_binds(family, port) for family in (socket.AF_INET, socket.AF_INET6))


def _binds(family: socket.AddressFamily, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(("", port))
    except OSError as error:
        # A machine may have only one of the two.
        return error.errno != errno.EADDRINUSE
    return True
