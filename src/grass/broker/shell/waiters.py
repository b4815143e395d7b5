"""Tasks that wait: for a job to change, for a commit, or for the end of a round."""

import asyncio
from collections.abc import Iterable


class Broadcast:
    """A recurring event that many tasks wait for."""

    def __init__(self) -> None:
        self._next: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Return when it has happened once more."""
        if self._next is None or self._next.done():
            self._next = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._next)

    def notify(self) -> None:
        """Resume all that wait."""
        if self._next is not None and not self._next.done():
            self._next.set_result(None)


class Waiters:
    """Tasks that sleep until a job changes, or until anything is committed."""

    def __init__(self) -> None:
        self._of_jobs: dict[int, set[asyncio.Future[None]]] = {}
        self._commit = Broadcast()
        self.round = Broadcast()
        """The end of a round, also of one that committed nothing."""

    async def moved(self, job: int) -> None:
        """Return when the job's state or attempt has changed."""
        waiter = asyncio.get_running_loop().create_future()
        waiters = self._of_jobs.setdefault(job, set())
        waiters.add(waiter)
        try:
            await waiter
        finally:
            waiters.discard(waiter)
            if not waiters and self._of_jobs.get(job) is waiters:
                del self._of_jobs[job]

    async def next_commit(self) -> None:
        """Return when something more has been committed."""
        await self._commit.wait()

    def wake(self, jobs: Iterable[int]) -> None:
        """Wake the tasks that wait for one of these jobs."""
        for job in self._of_jobs.keys() & jobs:
            for waiter in self._of_jobs.pop(job):
                if not waiter.done():
                    waiter.set_result(None)

    def committed(self) -> None:
        """Wake the tasks that wait for a commit."""
        self._commit.notify()
