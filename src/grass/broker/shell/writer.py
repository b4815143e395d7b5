"""The thread that commits.

SQLite and fsync block, so they run beside the event loop; one thread, because exactly
one connection writes. A hop costs about as much as a small commit: it is made once for
a batch, never for a statement.
"""

import asyncio
import threading
from queue import Empty, SimpleQueue

from grass.keeper.crash_points import crash_point
from grass.store.changes import Changes
from grass.store.interface import Store

_Job = tuple[Changes, int, asyncio.AbstractEventLoop, "asyncio.Future[None]"]


IDLE_S = 0.02
"""How long nothing must come before the store may tidy up."""


class Writer:
    """Commits one batch after the other."""

    def __init__(self, store: Store) -> None:
        """Start the thread; `stop` ends it."""
        self._store = store
        self._waiting: SimpleQueue[_Job | None] = SimpleQueue()
        self._may_shrink = True
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    async def commit(self, changes: Changes, epoch: int) -> None:
        """Return when the changes are durable; raise `StorageError` if they are not."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        # A broker that ends does not ask what came of its last commit.
        done.add_done_callback(lambda over: over.cancelled() or over.exception())
        self._waiting.put((changes, epoch, loop, done))
        # A commit that has begun cannot be cancelled: its outcome is awaited.
        await asyncio.shield(done)

    def stop(self) -> None:
        """Finish the commits that wait and end the thread; may be called twice."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            changes, epoch, loop, done = job
            crash_point("broker.before-commit")
            self._may_shrink = True
            try:
                self._store.commit(changes, epoch)
            except Exception as error:  # noqa: BLE001 -- carried to the caller
                loop.call_soon_threadsafe(_fail, done, error)
            else:
                crash_point("broker.after-commit")
                loop.call_soon_threadsafe(_succeed, done)

    def _next(self) -> _Job | None:
        """Wait for a batch; while none comes, give unused room back."""
        while True:
            try:
                return self._waiting.get(timeout=IDLE_S if self._may_shrink else None)
            except Empty:
                self._may_shrink = self._store.shrink()


def _succeed(done: "asyncio.Future[None]") -> None:
    if not done.done():
        done.set_result(None)


def _fail(done: "asyncio.Future[None]", error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
