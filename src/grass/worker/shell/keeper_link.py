"""The worker's connection to its keeper: JSON lines over a Unix socket.

Lines that arrive together are handed over together, and verbs leave in one write, so
that a burst of exits and starts costs two system calls.
"""

import asyncio
import json
from collections.abc import Callable
from typing import cast

from grass.keeper.launch import reach_keeper
from grass.worker.core.effects import Verb


class KeeperLink(asyncio.Protocol):
    """One connection to a keeper."""

    def __init__(
        self, on_lines: Callable[[list[Verb]], None], on_lost: Callable[[], None]
    ) -> None:
        """`on_lines` gets every batch of lines; `on_lost` is called once at the end."""
        self._on_lines = on_lines
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the full state first."""
        self._transport = cast("asyncio.Transport", transport)
        self.send([{"v": "hello"}])

    def data_received(self, data: bytes) -> None:
        """Hand over the whole lines that have come."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if lines:
            self._on_lines([json.loads(line) for line in lines])

    def connection_lost(self, _error: Exception | None) -> None:
        """Tell the worker that the keeper is gone."""
        self._transport = None
        self._on_lost()

    def send(self, verbs: list[Verb]) -> None:
        """Send verbs in one write; without a connection they go nowhere."""
        if self._transport is not None and verbs:
            text = "\n".join([_encode(verb) for verb in verbs])
            self._transport.write(text.encode() + b"\n")

    def close(self) -> None:
        """End the connection; the keeper and its jobs go on."""
        if self._transport is not None:
            self._transport.close()


_encode = json.JSONEncoder(separators=(",", ":")).encode


async def open_keeper(
    directory: str, link: KeeperLink, log_format: str = "text"
) -> None:
    """Connect to the keeper of a directory, starting one where none runs."""
    loop = asyncio.get_running_loop()
    channel = await loop.run_in_executor(None, reach_keeper, directory, log_format)
    channel.setblocking(False)
    await loop.create_unix_connection(lambda: link, sock=channel)
