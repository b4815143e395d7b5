"""Counts of jobs, kept with every commit, so that no view has to count them.

`job_counts` has the number of jobs in each state by array, queue, project and owner,
`array_spans` the ids and times of each array. They change in the transaction that
changes the jobs. Jobs that still arrive are counted when all of them have arrived.
"""

import json
from collections import Counter
from collections.abc import Iterable
from itertools import groupby

from grass.model.jobs.job import Common, Job
from grass.model.jobs.lifecycle import JobState
from grass.store.changes import Changes
from grass.store.sql.dialect import Connection, Dialect

CountKey = tuple[str, int, str, str, str]
"""State, array, queue, project and owner; array 0 has the jobs of none."""
ArraySpan = tuple[int, int, int | None, int | None]
"""First job, last job, first start, last end."""


class Arriving:
    """Counts of jobs that still arrive, by the first of their range.

    No range outlives its daemon, so they are kept in memory.
    """

    def __init__(self) -> None:
        self.counts: dict[int, Counter[CountKey]] = {}
        self._next: dict[int, int] = {}
        """The first job of each range that was not written yet."""

    def add(self, jobs: dict[int, Job], first: int, last: int) -> dict[int, Job]:
        """Count jobs of a range that are written for the first time; return others.

        With the last of a range the first ones may be written again: they start.
        """
        counts = self.counts.setdefault(first, Counter())
        new, others = _parted(jobs, self._next.get(first, first), last)
        for (common, state), some in groupby(new, _common_and_state):
            counts[_key_of(state, common)] += sum(1 for _ in some)
        if new:
            self._next[first] = max(job.id for job in new) + 1
        return others

    def take(self, first: int) -> Counter[CountKey]:
        """Return the counts of a range all of whose jobs have arrived."""
        self._next.pop(first, None)
        return self.counts.pop(first)


class Counting:
    """The counting of one transaction."""

    def __init__(
        self,
        db: Connection,
        sql: Dialect,
        changes: Changes,
        arriving: Arriving,
    ) -> None:
        """Look at what is to change, before it does."""
        self._db = db
        self._sql = sql
        self._removed = set(changes.removed_jobs)
        self._saved = changes.jobs
        self._before = changes.before
        self._arrived: list[tuple[int, Counter[CountKey]]] = []
        ranges = dict(db.execute(sql["load_arrivals"])) | dict(changes.arrivals)
        for first, last in ranges.items():
            self._saved = arriving.add(self._saved, first, last)
            if first in changes.removed_arrivals:
                self._arrived.append((last, arriving.take(first)))
        unknown = [number for number in self._saved if number not in self._before]
        self._old = self._counted([*unknown, *self._removed])

    def write(self) -> None:
        """Write the counts, once the jobs are written."""
        deltas = {key: count for key, count in self._deltas().items() if count}
        if deltas:
            rows = [(*key, count) for key, count in deltas.items()]
            self._db.executemany(self._sql["add_to_count"], rows)
            less = [key for key, count in deltas.items() if count < 0]
            self._db.executemany(self._sql["remove_count"], less)
        spans = _spans(self._saved.values())
        for last, counts in self._arrived:
            spans += [(array, last, None, None) for array in _arrays(counts)]
        if spans:
            self._db.executemany(self._sql["extend_span"], spans)
        if self._removed:
            arrays = [(array,) for array in _arrays(self._old.values())]
            self._db.executemany(self._sql["remove_span"], arrays)

    def _counted(self, ids: list[int]) -> dict[int, CountKey]:
        """Read how these jobs are counted until now."""
        if not ids:
            return {}
        found = self._db.execute(self._sql["read_counted"], (json.dumps(ids),))
        return {row[0]: row[1:] for row in found}

    def _deltas(self) -> Counter[CountKey]:
        deltas: Counter[CountKey] = Counter()
        for key in self._old.values():
            deltas[key] -= 1
        before = self._before
        for number, job in self._saved.items():
            if number in self._removed:
                continue
            deltas[_key(job, self._old.get(number))] += 1
            if number in before:
                deltas[_key_of(*before[number])] -= 1
        for _, counts in self._arrived:
            deltas.update(counts)
        return deltas


def _parted(
    jobs: dict[int, Job], first: int, last: int
) -> tuple[list[Job], dict[int, Job]]:
    """Return the jobs of a range of ids, and the others."""
    others = {id: job for id, job in jobs.items() if not first <= id <= last}
    if len(others) == len(jobs):
        return [], jobs
    return [job for id, job in jobs.items() if first <= id <= last], others


def _common_and_state(job: Job) -> tuple[Common, JobState]:
    return job.common, job.state


def _arrays(keys: Iterable[CountKey]) -> list[int]:
    return sorted({key[1] for key in keys if key[1]})


def _key_of(state: JobState, common: Common) -> CountKey:
    array = common.array or 0
    return (state.value, array, common.queue, common.project, common.owner)


def _key(job: Job, old: CountKey | None) -> CountKey:
    if old is None:
        return _key_of(job.state, job.common)
    # What a job is saved with again is its state and its queue.
    return (job.state.value, old[1], job.queue, old[3], old[4])


def _spans(jobs: Iterable[Job]) -> list[ArraySpan]:
    """Return the ids and times of the arrays of these jobs, as far as they tell."""
    spans: dict[int, ArraySpan] = {}
    for job in jobs:
        array = job.common.array
        if array is not None:
            _, last, start, end = spans.get(array, (0, 0, None, None))
            spans[array] = (
                array,
                max(last, job.id),
                min(_known(start, job.started_at), default=None),
                max(_known(end, job.finished_at), default=None),
            )
    return list(spans.values())


def _known(*times: int | None) -> list[int]:
    return [at for at in times if at is not None]
