"""Queries for users: pages of jobs, details, selections, the journal."""

import json
from functools import partial
from itertools import chain
from operator import attrgetter

from msgspec.structs import replace

from grass.model.id_runs import Runs
from grass.model.jobs.dependencies import runs_of
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState
from grass.model.range_index import RangeIndex
from grass.model.selectors import Selection
from grass.store.changes import StoredEvent
from grass.store.interface import JobDetails, JobFilter, Order
from grass.store.sql import job_filters, rows
from grass.store.sql.dialect import Connection, Dialect

_ORDERS = {
    Order.NEWEST: "j.id DESC",
    Order.OLDEST: "j.id ASC",
    Order.NEXT: "j.priority DESC, j.id ASC",
    Order.FINISHED: "j.finished_at DESC, j.id DESC",
}

_AMONG = "j.id IN (SELECT CAST(value AS BIGINT) FROM @list)"
_EVENTS_OF = """seq IN (
    SELECT e.seq FROM events AS e WHERE e.job = ?
    UNION SELECT c.seq FROM (
        SELECT e.seq, e.data FROM events AS e @by_index(events_enqueued)
        WHERE e.kind = 'enqueued' AND e.job <= ? ORDER BY e.job DESC LIMIT 1
    ) AS c WHERE {last} >= ?
)"""
"""Events that name the job, and the one of the call that added it with others."""
_OF_KINDS = "{unindexed}kind IN (SELECT value FROM @list)"
"""Without the index of kinds: a job has few events."""


def page(
    db: Connection, sql: Dialect, wanted: JobFilter, limit: int
) -> list[JobDetails]:
    """Read one page of jobs with their specs and attempts."""
    found: dict[int, Job] = {}
    selection = job_filters.smallest_first(db, sql, wanted.selection)
    for part in job_filters.parts(replace(wanted, selection=selection)):
        where, values = job_filters.where(db, sql, part)
        statement = sql["read_jobs"].format(
            index=job_filters.index(sql, part), where=where, order=_ORDERS[wanted.order]
        )
        some = rows.jobs_from(db.execute(statement, (*values, limit)))
        found.update((job.id, job) for job in some)
    jobs = list(found.values())
    if wanted.order is Order.NEXT:
        jobs.sort(key=lambda job: (-job.priority, job.id))
    elif wanted.order is not Order.FINISHED:
        newest_first = wanted.order is Order.NEWEST
        jobs.sort(key=attrgetter("id"), reverse=newest_first)
    return with_details(db, sql, jobs[:limit])


def details(db: Connection, sql: Dialect, ids: list[int]) -> list[JobDetails]:
    """Read these jobs, those that exist, in order of id."""
    return with_details(db, sql, jobs_by_id(db, sql, ids))


def jobs_by_id(db: Connection, sql: Dialect, ids: list[int]) -> list[Job]:
    """Read these jobs alone, those that exist, in order of id."""
    statement = sql["read_jobs"].format(
        index="", where=sql.of(_AMONG), order="j.id ASC"
    )
    found = db.execute(statement, (json.dumps(ids), len(ids)))
    return list(rows.jobs_from(found))


def states(db: Connection, sql: Dialect, runs: Runs) -> dict[int, JobState]:
    """Return the states of the jobs in these ranges, those that exist."""
    single = json.dumps([first for first, last in runs if first == last])
    found = list(db.execute(sql["states_of"], (single,)))
    for first, last in runs:
        if first < last:
            found += db.execute(sql["states_between"], (first, last))
    return {job: JobState(state) for job, state in found}


def select(db: Connection, sql: Dialect, selection: Selection) -> list[int]:
    """Return the ids of all jobs of a selection, in order."""
    ordered = job_filters.smallest_first(db, sql, selection)
    where, values = job_filters.of_selection(db, sql, ordered)
    statement = sql["select_ids"].format(where=where)
    return [row[0] for row in db.execute(statement, values)]


def dependents(db: Connection, sql: Dialect, ids: list[int]) -> list[int]:
    """Return the cancelled jobs that had waited for these, directly or by others."""
    by_spec: dict[int, list[int]] = {}
    for job, spec in db.execute(sql["cancelled_dependents"]):
        by_spec.setdefault(spec, []).append(job)
    waiting = RangeIndex()
    wanted = json.dumps(list(by_spec))
    for number, body in db.execute(sql["read_specs"], (wanted,)):
        waiting.add(runs_of(rows.spec_from(number, body).after), number)
    found: dict[int, None] = {}
    left = list(ids)
    while left:
        for spec in waiting.holders(left.pop()):
            more = by_spec.pop(spec, [])
            found.update(dict.fromkeys(more))
            left += more
    return sorted(found)


def events(
    db: Connection,
    sql: Dialect,
    wanted: tuple[int, int | None, tuple[str, ...]],
    limit: int,
) -> list[StoredEvent]:
    """Read the journal: after a line, of a job, of some kinds."""
    after, job, kinds = wanted
    read = partial(_events, db, sql, limit)
    if job is not None:
        of_job = sql.of(_EVENTS_OF).format(last=sql.number_in("c.data", "last"))
        where, values = f"seq > ? AND {of_job}", [after, job, job, job]
        if kinds:
            of_kinds = sql.of(_OF_KINDS).format(unindexed=sql.unindexed)
            return read(f"{where} AND {of_kinds}", *values, json.dumps(kinds))
        return read(where, *values)
    if not kinds:
        return read("seq > ?", after)
    # By the index each kind is in order, several of them are not.
    each = [read("kind = ? AND seq > ?", kind, after) for kind in set(kinds)]
    return sorted(chain.from_iterable(each), key=attrgetter("seq"))[:limit]


def _events(
    db: Connection, sql: Dialect, limit: int, where: str, *values: object
) -> list[StoredEvent]:
    statement = sql["read_events"].format(where=where)
    return [StoredEvent(*row) for row in db.execute(statement, (*values, limit))]


def with_details(db: Connection, sql: Dialect, jobs: list[Job]) -> list[JobDetails]:
    """Add to jobs their specs and attempts."""
    ids = json.dumps([job.id for job in jobs])
    spec_ids = json.dumps(sorted({job.spec for job in jobs}))
    specs = {
        number: rows.spec_from(number, body)
        for number, body in db.execute(sql["read_specs"], (spec_ids,))
    }
    known = {job.id: JobDetails(job, specs[job.spec], []) for job in jobs}
    for row in db.execute(sql["read_attempts"], (ids,)):
        known[row[0]].attempts.append(rows.attempt_from(row))
    return list(known.values())
