"""The worker's connection to its keeper: lines of JSON over a Unix socket."""

import asyncio
from collections.abc import Callable
from typing import cast

from grass.event_log import EventLog
from grass.keeper.alike_starts import FIRST_VERSION, encode_like
from grass.keeper.codec import BadMessage, BrokenLine, decode_entry, encode
from grass.keeper.launch import reach_keeper
from grass.keeper.protocol import Entry, HelloEntry, HelloVerb, StartVerb, Verb

log = EventLog(__name__)


class KeeperLink(asyncio.Protocol):
    """One connection to a keeper.

    Entries that arrive together are passed on together, and verbs leave in one write,
    so that a burst of exits and starts costs two system calls.
    """

    def __init__(
        self, on_entries: Callable[[list[Entry]], None], on_lost: Callable[[], None]
    ) -> None:
        """`on_entries` gets every batch; `on_lost` is called once at the end."""
        self._on_entries = on_entries
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._rest = b""
        self._knows_alike = False
        self._last_start: StartVerb | None = None
        """The last one that was sent as a whole."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the full state first."""
        self._transport = cast("asyncio.Transport", transport)
        self.send([HelloVerb()])

    def data_received(self, data: bytes) -> None:
        """Pass on the complete lines that have come."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if lines:
            entries = _understood(lines)
            for entry in entries:
                if isinstance(entry, HelloEntry):
                    self._knows_alike = entry.version >= FIRST_VERSION
            self._on_entries(entries)

    def connection_lost(self, _error: Exception | None) -> None:
        """Tell the worker that the keeper is gone."""
        self._transport = None
        self._on_lost()

    def send(self, verbs: list[Verb]) -> None:
        """Send verbs in one write; without a connection they are dropped."""
        if self._transport is not None and verbs:
            self._transport.write(b"".join(map(self._line, verbs)))

    def _line(self, verb: Verb) -> bytes:
        if not isinstance(verb, StartVerb):
            return encode(verb)
        known = self._last_start
        line = None if known is None else encode_like(verb, known)
        if line is None:
            self._last_start = verb if self._knows_alike else None
            line = encode(verb)
        return line

    def close(self) -> None:
        """End the connection; the keeper and its jobs go on."""
        if self._transport is not None:
            self._transport.close()


def _understood(lines: list[bytes]) -> list[Entry]:
    """Decode lines of a keeper; one that cannot be understood is logged and skipped."""
    entries = []
    for line in lines:
        try:
            entry = decode_entry(line)
        except (BrokenLine, BadMessage) as error:
            log.warning("keeper.bad_entry", error=error)
            continue
        if entry is not None:
            entries.append(entry)
    return entries


async def open_keeper(
    directory: str, link: KeeperLink, log_format: str = "text"
) -> None:
    """Connect to the keeper of a directory, starting one where none runs."""
    loop = asyncio.get_running_loop()
    channel = await loop.run_in_executor(None, reach_keeper, directory, log_format)
    channel.setblocking(False)
    await loop.create_unix_connection(lambda: link, sock=channel)
