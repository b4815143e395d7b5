"""Queries of counts: how many jobs match, which arrays, and how arrays stand.

What is counted with every commit is not counted again (`job_counts`); only a name or a
range of ids needs a look at the jobs themselves.
"""

import json

from msgspec.structs import replace

from grass.model.jobs.lifecycle import JobState
from grass.store.interface import ArrayTotals, JobFilter, Order
from grass.store.sql import job_filters
from grass.store.sql.dialect import Connection, Dialect


def counts(db: Connection, sql: Dialect, wanted: JobFilter) -> dict[JobState, int]:
    """Count the jobs that a filter matches by their state."""
    name = "sum_counts"
    if not job_filters.is_counted(wanted):
        name = "count_jobs"
        selection = job_filters.smallest_first(db, sql, wanted.selection)
        wanted = replace(wanted, selection=selection)
    where, values = job_filters.where(db, sql, wanted)
    found = db.execute(sql[name].format(where=where), values)
    return {JobState(state): count for state, count in found}


def queue_counts(db: Connection, sql: Dialect) -> dict[str, dict[JobState, int]]:
    """Count all jobs by queue and state."""
    found: dict[str, dict[JobState, int]] = {}
    for queue, state, count in db.execute(sql["count_by_queue"]):
        found.setdefault(queue, {})[JobState(state)] = count
    return found


def arrays(db: Connection, sql: Dialect, wanted: JobFilter, limit: int) -> list[int]:
    """Return arrays with a matching member, in the order of those members."""
    where, values = job_filters.where(db, sql, wanted)
    counted, known = job_filters.where(db, sql, job_filters.counted(wanted))
    if wanted.order is Order.FINISHED:
        statement = sql["ended_arrays"].format(where=where, counted=counted)
        asked = (*known, *values, limit)
    else:
        statement = sql["next_arrays"].format(where=where, counted=counted)
        asked = (*values, *known, limit)
    return [row[0] for row in db.execute(statement, asked)]


def array_totals(
    db: Connection, sql: Dialect, arrays: list[int], wanted: JobFilter
) -> dict[int, ArrayTotals]:
    """Count the members of these arrays that match, by array."""
    found: dict[int, ArrayTotals] = {}
    counted, values = job_filters.where(db, sql, job_filters.counted(wanted))
    statement = sql["count_members"].format(counted=counted)
    for row in db.execute(statement, (json.dumps(arrays), *values)):
        first, last, state, count, started_at, finished_at = row
        known = ArrayTotals(first, last, {}, started_at, finished_at)
        found.setdefault(first, known).states[JobState(state)] = count
    return found
