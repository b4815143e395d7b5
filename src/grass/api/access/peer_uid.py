"""Who is calling: the uid at the other end of the Unix socket.

uvicorn does not tell a route about its socket, so a thin subclass of its protocol looks
once per connection and puts the identity into the request's scope. The socket lies in a
directory of the owner's alone; the uid is checked all the same, by `auth`.
"""

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_CREDENTIALS = struct.Struct("3i")


LARGEST_HEAD = 2**20
"""In bytes, path and headers together; uvicorn itself knows no limit."""


class PeerProtocol(HttpToolsProtocol):
    """HTTP on a Unix socket, with the caller's uid in `scope["state"]`."""

    largest_head = LARGEST_HEAD

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the kernel who connected."""
        super().connection_made(transport)
        self.app_state = {**self.app_state, "uid": _peer_uid(transport)}
        self._in_head = True
        self._head_bytes = 0

    def data_received(self, data: bytes) -> None:
        """Take what comes, unless it is a head without end."""
        self._head_bytes += len(data) if self._in_head else 0
        super().data_received(data)
        if self._in_head and self._head_bytes > self.largest_head:
            self.transport.close()

    def on_message_begin(self) -> None:
        """Count from the first byte of a request."""
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        """Count no more: a body has a limit of its own."""
        super().on_headers_complete()
        self._in_head = False
        self._head_bytes = 0


def _peer_uid(transport: asyncio.Transport) -> int | None:
    channel: Any = transport.get_extra_info("socket")
    if channel is None or channel.family != socket.AF_UNIX:
        return None
    raw = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return int(uid)
