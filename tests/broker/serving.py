"""A broker as it runs, with a worker that the test plays and a store that may fail."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import uvloop
from tests.support.far_end import FarEnd
from tests.support.patience import PATIENCE_S

from grass.broker.shell.service import Broker
from grass.errors import StorageError
from grass.link.channel import LinkEnd, pair
from grass.link.messages import ToBroker, ToWorker, Welcome
from grass.store.changes import Changes
from grass.store.sqlite.database_file import is_fatal
from grass.store.sqlite.sqlite_store import SqliteStore

Story = Callable[[Broker, FarEnd], Awaitable[None]]


class FailingStore(SqliteStore):
    """Refuses the next commits with these errors."""

    errors: list[Exception]

    def commit(self, changes: Changes, epoch: int = 0) -> None:
        if self.errors:
            raise self.errors.pop()
        super().commit(changes, epoch)


def play(path: Path, story: Story, *errors: Exception) -> None:
    """Run a broker with one worker for as long as the story lasts."""
    asyncio.run(_play(path, story, list(errors)))


def play_on_uvloop(path: Path, story: Story) -> None:
    """Run the same on the event loop that daemons have."""
    uvloop.run(_play(path, story, []))


async def _play(path: Path, story: Story, errors: list[Exception]) -> None:
    store = FailingStore(path / "grass.db")
    store.errors = []
    broker = Broker(store, is_fatal)
    ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
    broker.serve(ends[0])
    running = asyncio.create_task(broker.run())
    worker = FarEnd(ends[1])
    worker.hello()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await worker.hears(Welcome)
            store.errors = errors
            await story(broker, worker)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, StorageError):
            await running
        store.close()
