"""Queries for users: pages of jobs, details, selections, the journal.

Filters become SQL here and nowhere else; every value is a parameter.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from operator import attrgetter

from msgspec.structs import replace

from grass.model import selectors
from grass.model.job import Job
from grass.model.lifecycle import UNFINISHED, JobState
from grass.model.selectors import Selection
from grass.store.changes import StoredEvent
from grass.store.interface import ArrayTotals, JobDetails, JobFilter, Order
from grass.store.sqlite import rows
from grass.store.sqlite.statements import Statements

_ORDERS = {
    Order.NEWEST: "j.id DESC",
    Order.OLDEST: "j.id ASC",
    Order.NEXT: "j.priority DESC, j.id ASC",
    Order.FINISHED: "j.finished_at DESC",
}


_LAST = """SELECT k.id FROM jobs AS k WHERE NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE k.id BETWEEN a.first_job AND a.last_job
) ORDER BY k.id DESC LIMIT 1"""
_IN_RANGES = """j.id IN (
    SELECT k.id FROM json_each(?) AS r INNER JOIN jobs AS k
    ON k.id BETWEEN json_extract(r.value, '$[0]') AND json_extract(r.value, '$[1]')
)"""


_NAME = """CASE WHEN instr(j.name, '{') = 0 THEN j.name
    ELSE filled_name(j.name, j.id, j.array_index, j.body) END"""
"""A job's own name; the column has the one that members of its array share."""


def add_functions(db: sqlite3.Connection) -> None:
    """Add the functions that selectors need to a connection."""
    db.create_function("regexp", 2, selectors.matches, deterministic=True)
    db.create_function("filled_name", 4, rows.filled_name_of, deterministic=True)


def page(
    db: sqlite3.Connection, sql: Statements, wanted: JobFilter, limit: int
) -> list[JobDetails]:
    """Read one page of jobs with their specs and attempts."""
    found: dict[int, Job] = {}
    for part in _parts(wanted):
        where, values = _filter(part)
        statement = sql["read_jobs"].format(where=where, order=_ORDERS[wanted.order])
        some = rows.jobs_from(db.execute(statement, (*values, limit)))
        found.update((job.id, job) for job in some)
    jobs = list(found.values())
    if wanted.order is Order.NEXT:
        jobs.sort(key=lambda job: (-job.priority, job.id))
    elif wanted.order is not Order.FINISHED:
        newest_first = wanted.order is Order.NEWEST
        jobs.sort(key=attrgetter("id"), reverse=newest_first)
    return _with_details(db, sql, jobs[:limit])


def counts(
    db: sqlite3.Connection, sql: Statements, wanted: JobFilter
) -> dict[JobState, int]:
    """Count the jobs that a filter matches by their state."""
    where, values = _filter(wanted)
    found = db.execute(sql["count_jobs"].format(where=where), values)
    return {JobState(state): count for state, count in found}


def arrays(
    db: sqlite3.Connection, sql: Statements, wanted: JobFilter, limit: int
) -> list[int]:
    """Return arrays with a matching member, in the order of those members."""
    where, values = _filter(wanted)
    finished = wanted.order is Order.FINISHED
    order = "MAX(j.finished_at) DESC" if finished else "MAX(j.priority) DESC, MIN(j.id)"
    statement = sql["find_arrays"].format(where=where, order=order)
    return [row[0] for row in db.execute(statement, (*values, limit))]


def array_totals(
    db: sqlite3.Connection, sql: Statements, arrays: list[int]
) -> dict[int, ArrayTotals]:
    """Count the members of these arrays, by array."""
    found: dict[int, ArrayTotals] = {}
    for row in db.execute(sql["count_members"], (json.dumps(arrays),)):
        first, last, state, count, started_at, finished_at = row
        known = found.setdefault(first, ArrayTotals(first, last))
        known.last = max(known.last, last)
        known.states[JobState(state)] = count
        known.started_at = _least(known.started_at, started_at)
        known.finished_at = max(known.finished_at or 0, finished_at or 0) or None
    return found


def _least(one: int | None, other: int | None) -> int | None:
    return min((at for at in (one, other) if at is not None), default=None)


def _parts(wanted: JobFilter) -> Iterator[JobFilter]:
    """Take a filter apart, so that an index gives each part in its order.

    A page then costs what is on it. In one statement SQLite would sort all that match,
    or look at all jobs for the few that do.
    """
    if wanted.order is Order.FINISHED:
        yield wanted
        return
    ids = tuple(one for one in wanted.selections if one.ids is not None)
    others = (one for one in wanted.selections if one.ids is None)
    chosen = [ids] if ids else []
    chosen += [(each,) for one in others for each in _by_state(one)]
    for state in wanted.states or (None,):
        for selections in chosen or [()]:
            states = () if state is None else (state,)
            yield replace(wanted, states=states, selections=selections)


def _by_state(one: Selection) -> list[Selection]:
    if not one.unfinished:
        return [one]
    return [Selection(state=state) for state in sorted(UNFINISHED)]


def details(
    db: sqlite3.Connection, sql: Statements, ids: list[int]
) -> list[JobDetails]:
    """Read these jobs, those that exist, in order of id."""
    return _with_details(db, sql, jobs_by_id(db, sql, ids))


def jobs_by_id(db: sqlite3.Connection, sql: Statements, ids: list[int]) -> list[Job]:
    """Read these jobs alone, those that exist, in order of id."""
    statement = sql["read_jobs"].format(
        where="j.id IN (SELECT value FROM json_each(?))", order="j.id ASC"
    )
    found = db.execute(statement, (json.dumps(ids), len(ids)))
    return list(rows.jobs_from(found))


def select(
    db: sqlite3.Connection, sql: Statements, selections: list[Selection]
) -> list[int]:
    """Return the ids of all jobs that any of the selections matches."""
    where, values = _any_of(selections)
    statement = sql["select_ids"].format(where=where)
    return [row[0] for row in db.execute(statement, values)]


def events(
    db: sqlite3.Connection,
    sql: Statements,
    wanted: tuple[int, int | None, tuple[str, ...]],
    limit: int,
) -> list[StoredEvent]:
    """Read the journal: after a line, of a job, of some kinds."""
    after, job, kinds = wanted
    clauses, values = ["seq > ?"], list[object]([after])
    if job is not None:
        clauses.append("job = ?")
        values.append(job)
    if kinds:
        clauses.append("kind IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(kinds))
    statement = sql["read_events"].format(where=" AND ".join(clauses))
    return [StoredEvent(*row) for row in db.execute(statement, (*values, limit))]


def _with_details(
    db: sqlite3.Connection, sql: Statements, jobs: list[Job]
) -> list[JobDetails]:
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


def _filter(wanted: JobFilter) -> tuple[str, list[object]]:
    clauses, values = ["TRUE"], list[object]()
    # The order of ending has an index of its own, and there may be a million jobs in a
    # queue but few in a state: a plus keeps SQLite from choosing another index.
    if wanted.states:
        plus = "+" if wanted.order is Order.FINISHED else ""
        clauses.append(f"{plus}j.state IN ({_quoted(wanted.states)})")
    if wanted.name is not None:
        clauses.append(f"{_NAME} = ?")
        values.append(wanted.name)
    for column in ("queue", "project", "owner"):
        if (value := getattr(wanted, column)) is not None:
            plus = "+" if wanted.states or wanted.order is Order.FINISHED else ""
            clauses.append(f"{plus}j.{column} = ?")
            values.append(value)
    if wanted.selections:
        either, chosen = _any_of(wanted.selections)
        clauses.append(either)
        values += chosen
    if wanted.before is not None:
        clauses.append("j.id < ?")
        values.append(wanted.before)
    if wanted.after is not None:
        clauses.append("j.id > ?")
        values.append(wanted.after)
    if wanted.array is not None:
        clauses.append("j.array = ?" if wanted.array else "j.array IS NULL")
        values += [wanted.array] if wanted.array else []
    if wanted.order is Order.FINISHED:
        clauses.append("j.finished_at IS NOT NULL")
    return " AND ".join(clauses), values


def _any_of(selections: Iterable[Selection]) -> tuple[str, list[object]]:
    """Make one condition of many selectors; ids by the thousand are one list."""
    clauses, values, ranges = list[str](), list[object](), list[tuple[int, int]]()
    for selection in selections:
        if selection.ids is not None:
            ranges.append(selection.ids)
            continue
        clause, value = _clause(selection)
        clauses.append(clause)
        values += value
    if ranges:
        clauses.append(_IN_RANGES)
        values.append(json.dumps(_merged(ranges)))
    return f"({' OR '.join(clauses) or 'FALSE'})", values


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _clause(selection: Selection) -> tuple[str, list[object]]:
    if selection.last:
        return f"j.id = ({_LAST})", []
    if selection.unfinished:
        return f"j.state IN ({_quoted(sorted(UNFINISHED))})", []
    for column in ("project", "state", "queue"):
        value = getattr(selection, column)
        if value is not None:
            return f"j.{column} = ?", [str(value)]
    return f"{_NAME} REGEXP ?", [selection.name]


def _quoted(states: object) -> str:
    return ", ".join(f"'{state}'" for state in states)  # type: ignore[attr-defined]
