"""Counts of jobs, kept with every commit, so that no view has to count them.

`job_counts` has the number of jobs in each state by array, queue, project and owner,
`array_spans` the ids and times of each array. They change in the transaction that
changes the jobs. Jobs that still arrive are counted when all of them have arrived.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable

from grass.model.job import Job
from grass.store.changes import Changes
from grass.store.sqlite.statements import Statements

Key = tuple[str, int, str, str, str]
"""State, array, queue, project and owner; array 0 has the jobs of none."""
Span = tuple[int, int, int | None, int | None]
"""First job, last job, first start, last end."""


class Counting:
    """The counting of one transaction."""

    def __init__(
        self, db: sqlite3.Connection, sql: Statements, changes: Changes
    ) -> None:
        """Look at what is to change, before it does."""
        self._db = db
        self._sql = sql
        self._removed = set(changes.removed_jobs)
        arriving = dict(db.execute(sql["load_arrivals"])) | dict(changes.arrivals)
        self._arrived = [(first, arriving[first]) for first in changes.removed_arrivals]
        self._saved = _without(changes.jobs, arriving)
        self._old = self._counted([*self._saved, *self._removed])

    def write(self) -> None:
        """Write the counts, once the jobs are written."""
        deltas = self._deltas()
        self._db.executemany(
            self._sql["add_to_count"], ((*key, count) for key, count in deltas.items())
        )
        less = [key for key, count in deltas.items() if count < 0]
        self._db.executemany(self._sql["remove_count"], less)
        self._db.executemany(self._sql["extend_span"], _spans(self._saved.values()))
        for arrived in self._arrived:
            self._db.execute(self._sql["count_arrival"], arrived)
            self._db.execute(self._sql["span_arrival"], arrived)
        if self._removed:
            arrays = {key[1] for key in self._old.values() if key[1]}
            self._db.executemany(
                self._sql["remove_span"], [(array,) for array in sorted(arrays)]
            )

    def _counted(self, ids: list[int]) -> dict[int, Key]:
        """Read how these jobs are counted until now."""
        if not ids:
            return {}
        found = self._db.execute(self._sql["read_counted"], (json.dumps(ids),))
        return {row[0]: row[1:] for row in found}

    def _deltas(self) -> dict[Key, int]:
        deltas: Counter[Key] = Counter()
        for key in self._old.values():
            deltas[key] -= 1
        for number, job in self._saved.items():
            if number not in self._removed:
                deltas[_key(job, self._old.get(number))] += 1
        return {key: count for key, count in deltas.items() if count}


def _without(jobs: dict[int, Job], ranges: dict[int, int]) -> dict[int, Job]:
    """Return the jobs that are in none of the ranges of ids."""
    if not ranges:
        return jobs
    bounds = list(ranges.items())
    return {
        number: job
        for number, job in jobs.items()
        if not any(first <= number <= last for first, last in bounds)
    }


def _key(job: Job, old: Key | None) -> Key:
    if old is None:
        array = job.array or 0
        return (job.state.value, array, job.queue, job.project, job.owner)
    # What a job is saved with again is its state and its queue.
    return (job.state.value, old[1], job.queue, old[3], old[4])


def _spans(jobs: Iterable[Job]) -> list[Span]:
    """Return the ids and times of the arrays of these jobs, as far as they tell."""
    spans: dict[int, Span] = {}
    for job in jobs:
        if job.array is not None:
            _, last, start, end = spans.get(job.array, (0, 0, None, None))
            spans[job.array] = (
                job.array,
                max(last, job.id),
                min(_known(start, job.started_at), default=None),
                max(_known(end, job.finished_at), default=None),
            )
    return list(spans.values())


def _known(*times: int | None) -> list[int]:
    return [at for at in times if at is not None]
