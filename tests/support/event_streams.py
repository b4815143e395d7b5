"""Server-sent events over a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grass.api.server.unix_listener import listen
from grass.api.server.unix_server import ApiServer
from tests.support.calling import Api


class Stream:
    """Server-sent events as they come."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def message(self) -> dict[str, str] | None:
        """Read one message; None at the stream's end."""
        fields: dict[str, str] = {}
        while True:
            line = (await self._line()).decode()
            if line == "" and fields:
                return fields
            if line == "0":
                return None
            name, colon, value = line.partition(": ")
            if colon:
                fields[name] = value

    async def event(self) -> dict[str, Any]:
        """Read the next message that has data."""
        while True:
            fields = await self.message()
            assert fields is not None
            if "data" in fields:
                event: dict[str, Any] = json.loads(fields["data"])
                assert fields["id"] == str(event["seq"])
                assert fields["event"] == event["kind"]
                return event

    async def frame(self, topic: str) -> dict[str, Any]:
        """Read up to the next frame of a topic, and return its data."""
        while True:
            fields = await self.message()
            assert fields is not None
            if fields.get("event") == topic:
                data: dict[str, Any] = json.loads(fields["data"])
                return data

    async def _line(self) -> bytes:
        return (await self._reader.readline()).strip()


@asynccontextmanager
async def served(api: Api, folder: Path) -> AsyncIterator[ApiServer]:
    server = ApiServer(api.app)
    serving = asyncio.create_task(server.serve_on(listen(str(folder / "s"))))
    yield server
    server.stop()
    await serving


@asynccontextmanager
async def listening(
    folder: Path, query: str = "", header: str = "", path: str = "/events/stream"
) -> AsyncIterator[Stream]:
    reader, writer = await asyncio.open_unix_connection(
        str(folder / "s"), limit=4 * 2**20
    )
    ask = f"GET /api/v1{path}{query} HTTP/1.1\r\nHost: x\r\n{header}\r\n"
    writer.write(ask.encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"200 OK" in head
    assert b"content-type: text/event-stream" in head.lower()
    yield Stream(reader)
    writer.close()
    await writer.wait_closed()
