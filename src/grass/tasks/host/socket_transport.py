"""The socket of a task host: where it listens, and connections that came there.

A worker connects for the program. Of two connections the later one counts: the one
before it is dead, though nobody has said so.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import anyio

_READ = 256 * 1024


class SocketTransport:
    """One connection."""

    def __init__(self, channel: socket.socket) -> None:
        channel.setblocking(False)
        self._channel = channel

    async def send(self, data: bytes) -> None:
        """Send bytes, as they are taken."""
        unsent = memoryview(data)
        while unsent:
            try:
                unsent = unsent[self._channel.send(unsent) :]
            except BlockingIOError:
                await anyio.wait_writable(self._channel)

    async def receive(self) -> bytes:
        """Return the next bytes; nothing at the end."""
        while True:
            await anyio.wait_readable(self._channel)
            with suppress(BlockingIOError):
                return self._channel.recv(_READ)

    def close(self) -> None:
        """Close it."""
        self._channel.close()


class Listener:
    """Waits for connections, and hands out the latest."""

    def __init__(self, path: str) -> None:
        """Listen at a path of any length, for the user alone."""
        folder, name = os.path.split(path)
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        before = os.umask(0o177)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with suppress(FileNotFoundError):
                os.unlink(path)
            self._socket.bind(f"/proc/self/fd/{descriptor}/{name}")
            self._socket.listen(8)
            self._socket.setblocking(False)
        finally:
            os.umask(before)
            os.close(descriptor)

    async def accept(self) -> SocketTransport:
        """Wait for a connection; of several that wait, return the latest."""
        latest: socket.socket | None = None
        while latest is None:
            await anyio.wait_readable(self._socket)
            with suppress(BlockingIOError):
                while True:
                    found, _ = self._socket.accept()
                    if latest is not None:
                        latest.close()
                    latest = found
        return SocketTransport(latest)

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()
