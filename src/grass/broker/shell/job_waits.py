"""Waits for what becomes of jobs, once that is committed."""

from collections.abc import Iterable
from itertools import islice, takewhile

from grass.broker.core.rounds import Rounds
from grass.broker.shell.waiters import Waiters

JOBS_AWAITED = 1_000
"""How many of the jobs that a caller waits for are looked up at once."""


class JobWaits:
    """The part of a broker that callers wait with; it changes nothing."""

    _rounds: Rounds
    _waiters: Waiters

    def unfinished(self, job: int) -> bool:
        """Tell whether a job has not ended, or its end is not committed yet."""
        return job in self._rounds.core.state.jobs or job in self._rounds.committing

    async def ended(self, jobs: Iterable[int]) -> None:
        """Return when none of these jobs is unfinished any more."""
        for job in jobs:
            while self.unfinished(job):
                await self._waiters.moved(job)

    async def all_ended(self, up_to: int) -> None:
        """Return when no job up to an id is unfinished that was so by now.

        Jobs are in memory in the order in which they came, so the first one tells of
        all. The last one to come is the one that most likely ends last.
        """
        known = self._rounds.core.state.jobs
        last = next((one for one in reversed(known) if one <= up_to), None)
        jobs = [] if last is None else [last]
        while jobs:
            await self.ended(jobs)
            # Many at a time: each look begins with all entries that were deleted.
            first = islice(self._rounds.core.state.jobs, JOBS_AWAITED)
            jobs = list(takewhile(lambda job: job <= up_to, first))
        while self._rounds.committing:
            await self._waiters.round.wait()

    async def written(self, job: int) -> None:
        """Return when the store knows what memory knows of this job."""
        while job in self._rounds.committing:
            await self._waiters.moved(job)

    async def moved(self, job: int) -> None:
        """Return when the job's state or attempt has changed."""
        await self._waiters.moved(job)

    async def next_commit(self) -> None:
        """Return when something more has been committed."""
        await self._waiters.next_commit()
