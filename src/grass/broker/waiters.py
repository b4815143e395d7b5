"""Whoever waits: for a job to move, or for anything to be committed."""

import asyncio
from collections.abc import Iterable


class Waiters:
    """Callers that sleep until a job changes, or until anything is committed."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._of_jobs: dict[int, set[asyncio.Future[None]]] = {}
        self._of_commits: asyncio.Future[None] | None = None

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
        if self._of_commits is None or self._of_commits.done():
            self._of_commits = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._of_commits)

    def wake(self, jobs: Iterable[int]) -> None:
        """Let those look again who wait for one of these jobs."""
        for job in self._of_jobs.keys() & jobs:
            for waiter in self._of_jobs.pop(job):
                if not waiter.done():
                    waiter.set_result(None)

    def committed(self) -> None:
        """Let those look again who wait for anything at all."""
        if self._of_commits is not None and not self._of_commits.done():
            self._of_commits.set_result(None)
