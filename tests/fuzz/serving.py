"""A broker and its API within the test, one for many requests."""

import asyncio
import contextlib
import json
from pathlib import Path

from grass.api.app import application
from grass.api.context import Context
from grass.broker.shell.service import Broker
from grass.errors import StorageError
from grass.link.channel import LinkEnd, pair
from grass.link.messages import ToBroker, ToWorker, Welcome
from grass.store.sqlite.database_file import is_fatal
from grass.store.sqlite.sqlite_store import SqliteStore
from tests.support.building import WORKER
from tests.support.calling import Answer, Api
from tests.support.far_end import FarEnd

WAITING = (
    "/jobs/wait",
    "/daemon/stop",
    "/events/stream",
    "/stream",
    "follow=",
    "wait=",
)
"""Where an answer may take as long as somebody waits for it."""
SOON_S = 0.2
PATIENCE_S = 10.0


class Served:
    """Asks one request after the other."""

    def __init__(self, folder: Path) -> None:
        self._runner = asyncio.Runner()
        self._store = SqliteStore(folder / "grass.db")
        self._runner.run(self._start())

    async def _start(self) -> None:
        self.broker = Broker(self._store, is_fatal)
        ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
        self.broker.serve(ends[0])
        worker = FarEnd(ends[1])
        app = application(Context(self.broker, WORKER, "1", 0, lambda: None))
        self.api = Api(app, self.broker, worker)
        self._running = asyncio.create_task(self.broker.run())
        worker.hello()
        await worker.hears(Welcome)

    def ask(self, method: str, path: str, body: bytes) -> Answer | None:
        """Send a request; None where it waits for something that does not happen."""
        return self._runner.run(self._ask(method, path, body))

    async def _ask(self, method: str, path: str, body: bytes) -> Answer | None:
        waits = any(word in path for word in WAITING)
        try:
            async with asyncio.timeout(SOON_S if waits else PATIENCE_S):
                return await self.api.send(method, path, body)
        except TimeoutError:
            assert waits, f"{method} {path} was not answered"
            return None

    def is_well(self) -> bool:
        """Tell whether a job can still be added, and shown with all the others."""
        body = json.dumps({"jobs": [{"command": "true", "hold": True}]}).encode()
        asked = [("POST", "/jobs", body), ("GET", "/overview", b"")]
        asked += [("GET", "/jobs?limit=1000", b""), ("GET", "/events?limit=1000", b"")]
        answers = [self.ask(*one) for one in asked]
        return all(one is not None and one.status == 200 for one in answers)

    def close(self) -> None:
        self._runner.run(self._stop())
        self._runner.close()
        self._store.close()

    async def _stop(self) -> None:
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError, StorageError):
            await self._running
