"""Filters as SQL: which jobs, by which index. Every value is a parameter.

An index is named wherever jobs are read in the order of starting or of ending: without
statistics SQLite may take another one, and sort all jobs that match for a short page.
"""

import json
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from grass.model.jobs.lifecycle import UNFINISHED, JobState
from grass.model.selectors import Selection
from grass.store.interface import JobFilter, Order
from grass.store.sql.dialect import Condition, Connection, Dialect

_LAST = """SELECT k.id FROM jobs AS k WHERE NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE k.id BETWEEN a.first_job AND a.last_job
) ORDER BY k.id DESC LIMIT 1"""
FEW_RANGES = 8
"""More ranges of ids than these are a table that is joined."""
_OF_NONE = "j.array IS NULL"
WAITING = "j.state IN ('held', 'waiting', 'queued')"
"""As the index `jobs_next` has it, which is used only where this is said."""


def counted(wanted: JobFilter) -> JobFilter:
    """Return what of a filter is known of counts; it may match more."""
    known = all(map(_is_counted, wanted.selections))
    return JobFilter(
        wanted.states,
        wanted.queue,
        wanted.project,
        owner=wanted.owner,
        selections=wanted.selections if known else (),
        order=Order.OLDEST,
    )


def is_counted(wanted: JobFilter) -> bool:
    """Tell whether counts are enough to know how many jobs match."""
    return replace(wanted, order=Order.OLDEST) == counted(wanted)


def _is_counted(one: Selection) -> bool:
    return one.ids is None and not one.last and one.name is None


def has_pattern(selections: Iterable[Selection]) -> bool:
    """Tell whether names have to be looked through."""
    return any(one.name is not None for one in selections)


def index(sql: Dialect, wanted: JobFilter) -> str:
    """Return which index a page is read by, as SQL."""
    has_ids = any(one.ids is not None or one.last for one in wanted.selections)
    name = None
    if wanted.order is Order.FINISHED:
        name = None if has_ids else "jobs_finished"
        name = name if wanted.array is None else "jobs_ended"
    elif wanted.order is Order.NEXT and wanted.array is not None:
        name = "jobs_next" if _is_waiting(wanted) else None
    elif wanted.order is Order.NEXT and len(wanted.states) == 1:
        name = None if has_ids else "jobs_state"
    return "" if name is None else sql.by_index(name)


def _is_waiting(wanted: JobFilter) -> bool:
    """Tell whether a filter asks for jobs in the order of `jobs_next`."""
    waiting = {JobState.HELD, JobState.WAITING, JobState.QUEUED}
    states = set(wanted.states)
    return wanted.order is Order.NEXT and bool(states) and states <= waiting


def parts(wanted: JobFilter) -> Iterator[JobFilter]:
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
            part = replace(wanted, states=states, selections=selections)
            if not _contradicts(part):
                yield part


def _contradicts(part: JobFilter) -> bool:
    """Tell whether one part of a filter asks for two states."""
    asked = {one.state for one in part.selections if one.state is not None}
    alone = len(part.selections) == 1 and bool(part.states)
    return alone and bool(asked) and not asked & set(part.states)


def _by_state(one: Selection) -> list[Selection]:
    if not one.unfinished:
        return [one]
    return [Selection(state=state) for state in sorted(UNFINISHED)]


def where(
    db: Connection, sql: Dialect, wanted: JobFilter, *, unindexed: bool = False
) -> Condition:
    """Return a filter as a condition on jobs `j`, and its values.

    `unindexed` keeps the columns that it names from being looked up in an index.
    """
    clauses, values = ["TRUE"], list[object]()
    for condition, of_condition in _conditions(db, sql, wanted, unindexed):
        clauses.append(condition)
        values += of_condition
    return " AND ".join(clauses), values


def _conditions(
    db: Connection, sql: Dialect, wanted: JobFilter, unindexed: bool
) -> Iterator[Condition]:
    # The order of ending has an index of its own, and there may be a million jobs in a
    # queue but few in a state: a plus keeps SQLite from choosing another index.
    finished = wanted.order is Order.FINISHED
    hidden = sql.unindexed if finished or unindexed else ""
    if wanted.states:
        yield f"{hidden}j.state IN ({_quoted(wanted.states)})", []
    plus = sql.unindexed if wanted.states else hidden
    columns = {name: f"{plus}j.{name} = ?" for name in ("queue", "project", "owner")}
    columns |= {"before": "j.id < ?", "after": "j.id > ?"}
    for name, condition in columns.items():
        if (value := getattr(wanted, name)) is not None:
            yield condition, [value]
    if wanted.name is not None:
        yield sql.is_named(db, wanted.name)
    if wanted.selections:
        yield any_of(db, sql, wanted.selections)
    if wanted.array is not None:
        yield ("j.array = ?", [wanted.array]) if wanted.array else (_OF_NONE, [])
    if finished:
        yield "j.finished_at IS NOT NULL", []
    if _is_waiting(wanted):
        yield WAITING, []


def any_of(db: Connection, sql: Dialect, selections: Iterable[Selection]) -> Condition:
    """Make one condition of many selectors; ids by the thousand are one list."""
    clauses, values, ranges = list[str](), list[object](), list[tuple[int, int]]()
    for selection in selections:
        if selection.ids is not None:
            ranges.append(selection.ids)
            continue
        clause, value = _clause(db, sql, selection)
        clauses.append(clause)
        values += value
    merged = _merged(ranges)
    if len(merged) > FEW_RANGES:
        clauses.append(sql.in_ranges)
        values.append(json.dumps(merged))
    else:
        clauses += ["j.id BETWEEN ? AND ?"] * len(merged)
        values += [end for one in merged for end in one]
    return f"({' OR '.join(clauses) or 'FALSE'})", values


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def _clause(db: Connection, sql: Dialect, selection: Selection) -> Condition:
    if selection.last:
        return f"j.id = ({_LAST})", []
    if selection.unfinished:
        return f"j.state IN ({_quoted(sorted(UNFINISHED))})", []
    for column in ("project", "state", "queue"):
        value = getattr(selection, column)
        if value is not None:
            return f"j.{column} = ?", [str(value)]
    return sql.has_name_like(db, selection.name or "")


def _quoted(states: object) -> str:
    return ", ".join(f"'{state}'" for state in states)  # type: ignore[attr-defined]
