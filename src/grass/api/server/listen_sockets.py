"""Binds the sockets on which a broker listens for other machines.

The check before a start binds them too, and closes them again, to find out whether the
address can be used.
"""

import errno
import socket

from grass.errors import Refused
from grass.model.addresses import DEFAULT_PORT, HIGHEST_PORT, Address

BACKLOG = 1024


def bound(address: Address) -> list[socket.socket]:
    """Listen on every IPv4 and IPv6 address of a host."""
    host, port = address
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise _cannot_listen(address, error) from error
    listeners: list[socket.socket] = []
    try:
        for family, _, _, _, place in dict.fromkeys(found):
            # A port of 0 is chosen once, and is then the same everywhere.
            number = listeners[0].getsockname()[1] if listeners else port
            listeners.append(_listening(family, (place[0], number, *place[2:]), host))
    except OSError as error:
        for listener in listeners:
            listener.close()
        raise _cannot_listen(address, error) from error
    return listeners


def _listening(family: int, place: tuple[object, ...], host: str) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # `::` means everything, IPv4 included; a number or a name means itself.
            only = int(host not in ("::", ""))
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
        listener.setblocking(False)
        listener.bind(place)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _cannot_listen(address: Address, error: OSError) -> Refused:
    return Refused(
        f"the broker cannot listen on {address}: {error.strerror or error}",
        f"give another --bind, such as {_other(address, error)}",
    )


def _other(address: Address, error: OSError) -> Address:
    """Return another address to suggest."""
    if error.errno == errno.EADDRINUSE and address.port < HIGHEST_PORT:
        return address._replace(port=address.port + 1)
    return Address("0.0.0.0", DEFAULT_PORT)  # noqa: S104 -- what a user may want
