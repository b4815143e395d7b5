"""Several jobs, as Python programs see them: a sequence with the verbs on all of it.

A list may have a million jobs, so it holds their ids. What is known of a job is read
when it is first asked for, together with the jobs that follow it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, overload

from grass.client.id_ranges import as_ranges, in_words
from grass.errors import NotFound, UsageError
from grass.verbs.calling import in_coroutines
from grass.verbs.job import Job, seconds_of
from grass.verbs.selected import Selected

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from grass.client.json_codec import Document
    from grass.verbs.calling import Caller
    from grass.verbs.keywords import Duration

_TOGETHER = 200
"""How many jobs are read at a time: each may need a selector of its own."""


class Jobs(Selected, Sequence[Job]):
    """Jobs in the order of their ids. A verb returns those that it was done to."""

    def __init__(self, ids: Iterable[int], broker: str | None = None) -> None:
        """Name jobs by their ids; `grass.jobs("3-9")` is how a program does so."""
        super().__init__(broker)
        ordered = sorted(set(ids))
        self._jobs = [Job(one, broker, None, self._read_from) for one in ordered]

    def __repr__(self) -> str:
        """Return which jobs they are."""
        return f"<Jobs {in_words(self.ids) or 'none'}>"

    def __len__(self) -> int:
        """Return how many they are."""
        return len(self._jobs)

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> Jobs: ...
    def __getitem__(self, place: int | slice) -> Job | Jobs:
        """Return the job at a place, or some of them."""
        if isinstance(place, int):
            return self._jobs[place]
        return Jobs((one.id for one in self._jobs[place]), self._broker)

    @property
    def ids(self) -> list[int]:
        """Their ids."""
        return [one.id for one in self._jobs]

    @property
    def selectors(self) -> list[str]:
        """The jobs as the command line names them: `["3-9", "12-12"]`."""
        return as_ranges(self.ids)

    def refresh(self) -> Self:
        """Read all of them anew."""
        with self._caller() as client:
            for at in range(0, len(self), _TOGETHER):
                self._read(client, self._jobs[at : at + _TOGETHER])
        return self

    def wait(self, timeout: Duration | None = None) -> Self:
        """Return when all have ended; raise `TimedOut` if that takes longer."""
        if self._jobs:
            with self._caller() as client:
                client.wait(self.selectors, seconds_of(timeout))
            for job in self._jobs:
                del job.document
            self._read_from(self._jobs[0])
        return self

    def result(self, timeout: Duration | None = None) -> Any:  # noqa: ANN401
        """Return what the function of the one job here returned; see `Job.result`."""
        if len(self._jobs) != 1:
            raise UsageError(f"these are {len(self):,} jobs", "results() has all")
        return self._jobs[0].result(timeout)

    def results(self, timeout: Duration | None = None) -> list[Any]:
        """Return what their functions returned, in order, once all have ended.

        Raises what the first of them raised that has not succeeded.
        """
        from grass.verbs.task_jobs import read_results

        if not self._jobs:
            return []
        with self._caller() as client:
            return list(read_results(client, self.ids, seconds_of(timeout)))

    def _read_from(self, job: Job) -> None:
        """Read a job and those that follow it, if nothing is known of them yet."""
        at = bisect_left(self._jobs, job.id, key=lambda one: one.id)
        unread = (one for one in islice(self._jobs, at, None) if not one.is_known)
        with self._caller() as client:
            self._read(client, list(islice(unread, _TOGETHER)))

    def _read(self, client: Caller, jobs: list[Job]) -> None:
        select = as_ranges(one.id for one in jobs)
        by_id = {one["id"]: one for one in client.jobs(select=select)}
        for job in jobs:
            if job.id not in by_id:
                raise NotFound(f"there is no job {job.id}")
            job.document = by_id[job.id]

    def _was_done(self, client: Caller, done: Document) -> Self:
        return type(self)(done["jobs"], self._broker)

    refresh_async = in_coroutines(refresh)
    wait_async = in_coroutines(wait)
    result_async = in_coroutines(result)
    results_async = in_coroutines(results)
