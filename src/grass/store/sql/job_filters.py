"""Filters as SQL: which jobs, by which index. Every value is a parameter.

An index is named wherever jobs are read in the order of starting or of ending: without
statistics SQLite may take another one, and sort all jobs that match for a short page.
"""

import json
from collections.abc import Iterable, Iterator
from math import inf

from msgspec.structs import replace

from grass.model.jobs.lifecycle import UNFINISHED, JobState
from grass.model.selectors import Kind, Selection, Selector
from grass.store.interface import JobFilter, Order
from grass.store.sql.dialect import Condition, Connection, Dialect

_NEWEST = """j.id = (SELECT j.id FROM jobs AS j WHERE {where} AND NOT EXISTS (
    SELECT 1 FROM arrivals AS a WHERE j.id BETWEEN a.first_job AND a.last_job
) ORDER BY j.id DESC LIMIT 1)"""
FEW_RANGES = 8
"""More ranges of ids than these are a table that is joined."""
_OF_NONE = "j.array IS NULL"
WAITING = "j.state IN ('held', 'waiting', 'queued')"
"""As the index `jobs_next` has it, which is used only where this is said."""


def counted(wanted: JobFilter) -> JobFilter:
    """Return what of a filter is known of counts; it may match more."""
    groups = wanted.selection.groups
    known = tuple(one for one in groups if all(map(_is_counted, one)))
    return JobFilter(
        wanted.states,
        wanted.queue,
        wanted.project,
        owner=wanted.owner,
        selection=Selection(known),
        order=Order.OLDEST,
    )


def is_counted(wanted: JobFilter) -> bool:
    """Tell whether counts are enough to know how many jobs match."""
    return replace(wanted, order=Order.OLDEST) == counted(wanted)


def _is_counted(one: Selector) -> bool:
    return one.kind in {Kind.STATE, Kind.PROJECT, Kind.QUEUE}


def smallest_first(db: Connection, sql: Dialect, selection: Selection) -> Selection:
    """Put the group that the fewest jobs match first: its index is used."""
    groups = selection.groups
    if len(groups) > 1:
        groups = tuple(sorted(groups, key=lambda one: _size(db, sql, one)))
    return replace(selection, groups=groups)


def _size(db: Connection, sql: Dialect, group: tuple[Selector, ...]) -> float:
    """Return how many jobs a group matches at most; infinity: nothing counts them."""
    ranges = [one.ids for one in group if one.ids is not None]
    if len(ranges) == len(group):
        return sum(last - first + 1 for first, last in _merged(ranges))
    if not all(map(_is_counted, group)):
        return inf
    where, values = any_of(db, sql, group)
    found = db.execute(sql["sum_counts"].format(where=where), values)
    return float(sum(row[1] for row in found))


def index(sql: Dialect, wanted: JobFilter) -> str:
    """Return which index a page is read by, as SQL."""
    selection = wanted.selection
    has_ids = selection.newest or any(
        one.kind in {Kind.IDS, Kind.LAST} for one in selection
    )
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
    or look at all jobs for the few that do. Of a selection it is the first group.
    """
    if wanted.order is Order.FINISHED or wanted.selection.newest:
        yield wanted
        return
    first, *others = wanted.selection.groups or ((),)
    for state in wanted.states or (None,):
        for some in _apart(first):
            groups = tuple(filter(None, (some, *others)))
            states = () if state is None else (state,)
            part = replace(wanted, states=states, selection=Selection(groups))
            if not _contradicts(part):
                yield part


def _apart(group: tuple[Selector, ...]) -> list[tuple[Selector, ...]]:
    """Return ids together, and every other selector alone."""
    ids = tuple(one for one in group if one.ids is not None)
    others = (one for one in group if one.ids is None)
    found = [ids] if ids else []
    found += [(each,) for one in others for each in _by_state(one)]
    return found or [()]


def _contradicts(part: JobFilter) -> bool:
    """Return whether no job can be in a state that all of a filter asks for."""
    asked = set(part.states)
    return bool(asked) and any(
        asked.isdisjoint(one.state for each in group for one in _by_state(each))
        for group in part.selection.groups
        if all(one.kind is Kind.STATE for one in group)
    )


def _by_state(one: Selector) -> list[Selector]:
    if not one.unfinished:
        return [one]
    return [Selector(state=state) for state in sorted(UNFINISHED)]


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
    if not wanted.selection.is_whole:
        yield of_selection(db, sql, wanted.selection)
    if wanted.array is not None:
        yield ("j.array = ?", [wanted.array]) if wanted.array else (_OF_NONE, [])
    if finished:
        yield "j.finished_at IS NOT NULL", []
    if _is_waiting(wanted):
        yield WAITING, []


def of_selection(db: Connection, sql: Dialect, selection: Selection) -> Condition:
    """Return a selection as a condition; its first group is looked up in an index."""
    clauses, values = ["TRUE"], list[object]()
    for place, group in enumerate(selection.groups):
        clause, of_group = any_of(db, sql, group, sql.unindexed if place else "")
        clauses.append(clause)
        values += of_group
    where = " AND ".join(clauses)
    return _NEWEST.format(where=where) if selection.newest else where, values


def any_of(
    db: Connection, sql: Dialect, group: Iterable[Selector], hidden: str = ""
) -> Condition:
    """Make one condition of many selectors; ids by the thousand are one list.

    `hidden` stands before columns that are not to be looked up in an index.
    """
    clauses, values, ranges = list[str](), list[object](), list[tuple[int, int]]()
    for selector in group:
        if selector.ids is not None:
            ranges.append(selector.ids)
            continue
        clause, value = _clause(db, sql, selector, hidden)
        clauses.append(clause)
        values += value
    merged = _merged(ranges)
    if len(merged) > FEW_RANGES:
        clauses.append(f"{hidden}{sql.in_ranges}")
        values.append(json.dumps(merged))
    else:
        clauses += [f"{hidden}j.id BETWEEN ? AND ?"] * len(merged)
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


def _clause(db: Connection, sql: Dialect, selector: Selector, hidden: str) -> Condition:
    if selector.last:
        return _NEWEST.format(where="TRUE"), []
    if selector.unfinished:
        return f"{hidden}j.state IN ({_quoted(sorted(UNFINISHED))})", []
    if selector.name is not None:
        return sql.has_name_like(db, selector.name)
    value = getattr(selector, selector.kind)
    return f"{hidden}j.{selector.kind} = ?", [str(value)]


def _quoted(states: object) -> str:
    return ", ".join(f"'{state}'" for state in states)  # type: ignore[attr-defined]
