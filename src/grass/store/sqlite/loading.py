"""Reading back the jobs that have not ended.

A million of them may wait, most of which are members of arrays: they follow on each
other, are alike but for id and index, and have done nothing yet. To read all columns of
each would take most of a restart. So after some jobs that are alike, the database is
asked how far that goes, and of the rest only what differs is read.
"""

import sqlite3
from collections.abc import Generator, Iterator, Mapping
from operator import attrgetter

from grass.model.job import Job
from grass.model.lifecycle import UNFINISHED
from grass.store.sqlite import rows

LONG = 1000
"""So many alike that it is worth asking how many more there are."""


def unfinished(db: sqlite3.Connection, sql: Mapping[str, str]) -> list[Job]:
    """Read the jobs that have not ended, in the order of their ids."""
    jobs: list[Job] = []
    for state in UNFINISHED:
        jobs += _untouched(db, sql, state.value)
        jobs += rows.jobs_from(db.execute(sql["load_touched_jobs"], (state.value,)))
    jobs.sort(key=attrgetter("id"))
    return jobs


def _untouched(
    db: sqlite3.Connection, sql: Mapping[str, str], state: str
) -> Iterator[Job]:
    """Read jobs that have only ever waited."""
    after: int | None = 0
    while after is not None:
        found = db.execute(sql["load_untouched_jobs"], (state, after))
        last = yield from _until_alike(rows.jobs_from(found))
        found.close()
        after = None if last is None else (yield from _rest(db, sql, last))


def _until_alike(jobs: Iterator[Job]) -> Generator[Job, None, Job | None]:
    """Give jobs on to many that are alike; returns the last of those."""
    first, count = None, 0
    for job in jobs:
        yield job
        count = count + 1 if job.common is first else 1
        first = job.common
        if count == LONG:
            return job
    return None


def _rest(
    db: sqlite3.Connection, sql: Mapping[str, str], last: Job
) -> Generator[Job, None, int | None]:
    """Give the jobs after one that are like it; returns after which others follow."""
    common, state = last.common, last.state
    values = rows.common_row(common)
    (end,) = db.execute(sql["end_of_alike"], (state.value, last.id, *values)).fetchone()
    bounds = (state.value, last.id, 2**62 if end is None else end)
    for number, index in db.execute(sql["load_alike_jobs"], bounds):
        yield Job(number, common, state, index)
    return None if end is None else end - 1
