"""Access to a broker from other machines: TCP server, key, and join line.

A daemon without --bind does not import this module, whose imports make a daemon a
quarter larger.
"""

import os
import socket

from grass.api.context import TcpEndpoint
from grass.api.server.listen_sockets import bound
from grass.api.server.tcp_server import TcpServer
from grass.api.server.unix_server import ApiServer
from grass.broker.shell.new_secrets import new_code
from grass.broker.shell.service import Broker
from grass.config import Home
from grass.daemon.hosting import Hosting
from grass.daemon.preflight import PASS_VARIABLE, pass_phrase
from grass.model.access import START_CODE
from grass.model.addresses import Address, Invitation, read_address
from grass.tls.server import identity

STARTED = "daemon"
"""The actor of what a daemon does at its start."""


class TcpAccess:
    """The TCP server of a broker, with its key and address."""

    def __init__(self, home: Home, hosting: Hosting) -> None:
        assert hosting.bind is not None
        self.identity = identity(
            home.folder, hosting.cert, lambda: pass_phrase(hosting.cert_pass_file)
        )
        # Jobs must not inherit it.
        os.environ.pop(PASS_VARIABLE, None)
        self._sockets = bound(hosting.bind)
        self._address = _advertised(hosting, self._sockets[0].getsockname()[1])
        self.endpoint = TcpEndpoint(str(self._address), self.identity.pin)

    async def serve(self, server: ApiServer) -> None:
        """Serve until cancelled."""
        # A broker that ceases to lead goes on listening, as another server.
        sockets = [one.dup() for one in self._sockets]
        await TcpServer(server, self.identity.context).serve(sockets)

    async def join_line(self, broker: Broker) -> str:
        """Return a line to paste on other machines; its code is valid for an hour."""
        code = await new_code(broker, STARTED, name=START_CODE)
        return f"grass join {Invitation(self._address, self.identity.pin, code)}"


def _advertised(hosting: Hosting, port: int) -> Address:
    """Return the address of the broker for other machines."""
    if hosting.advertise:
        return read_address(hosting.advertise, port)
    # Not the worker's name, which is no host's.
    return Address(socket.gethostname(), port)
