"""Pages of jobs in the order of a column, from any place on.

Where many jobs match, a page is read by the index of its order and costs what is looked
at on the way to so many that match. Where few do, they are found by the index of the
filter, and sorted. A pattern has no index: names are looked at once, for the page and
its totals.
"""

import json
from collections import Counter

from msgspec.structs import replace

from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState
from grass.store.interface import JobFilter, Order, SortedPage, Sorting, SortKey
from grass.store.sql import count_queries, job_filters, job_queries, rows
from grass.store.sql.dialect import Condition, Connection, Dialect

_INDEXES = {
    SortKey.NAME: "jobs_name",
    SortKey.STARTED: "jobs_started",
    SortKey.ENDED: "jobs_finished",
    SortKey.DURATION: "jobs_duration",
    SortKey.PRIORITY: "jobs_priority",
}
"""What an order is read by; that of ids is the table's own."""
_NULLABLE = {SortKey.STARTED, SortKey.ENDED, SortKey.DURATION}
_AMONG = "j.id IN (SELECT CAST(value AS BIGINT) FROM @list)"
_UNFINISHED = "j.state IN ('held', 'waiting', 'queued', 'running')"

SORTED_AT_LEAST = 20_000
"""How many jobs are sorted in some hundredths of a second."""


def page(
    db: Connection,
    sql: Dialect,
    wanted: JobFilter,
    sorting: Sorting,
    limit: int,
) -> SortedPage:
    """Read one page, and how many jobs match in all."""
    selection = job_filters.smallest_first(db, sql, wanted.selection)
    wanted = replace(wanted, order=Order.OLDEST, selection=selection)
    every = sum(count_queries.counts(db, sql, JobFilter(order=Order.OLDEST)).values())
    if selection.has_pattern:
        found = _looked_through(db, sql, wanted)
        totals = dict(Counter(map(JobState, found.values())))
        few = _is_few(totals, every, limit)
        condition: Condition = (sql.of(_AMONG), [json.dumps(list(found))])
    else:
        totals = count_queries.counts(db, sql, wanted)
        few = _is_few(totals, every, limit)
        condition = job_filters.where(db, sql, wanted, unindexed=not few)
    jobs = _Reading(db, sql, condition, sorting, few=few).jobs(limit + 1)
    more = sorting.place_of(jobs[limit - 1]) if len(jobs) > limit else None
    shown = job_queries.with_details(db, sql, jobs[:limit])
    return SortedPage(shown, more, totals)


def _is_few(totals: dict[JobState, int], every: int, limit: int) -> bool:
    """Tell whether to sort all that match is less than to look for a page of them.

    They may stand together far from where the page begins, so it is for some more.
    """
    matching = sum(totals.values())
    return matching < SORTED_AT_LEAST or matching**2 < limit * every


def _looked_through(db: Connection, sql: Dialect, wanted: JobFilter) -> dict[int, str]:
    """Return the state of each job that matches, by looking at all that may."""
    where, values = job_filters.where(db, sql, wanted)
    return dict(db.execute(sql["matching_states"].format(where=where), values))


def _columns(sql: Dialect) -> dict[SortKey, str]:
    """Return what each order is sorted by, as SQL."""
    return {
        SortKey.ID: "j.id",
        SortKey.NAME: "j.name",
        SortKey.STARTED: sql.started,
        SortKey.ENDED: "j.finished_at",
        SortKey.DURATION: f"j.finished_at - {sql.started}",
        SortKey.PRIORITY: "j.priority",
    }


class _Reading:
    """The reading of one page."""

    def __init__(
        self,
        db: Connection,
        sql: Dialect,
        condition: Condition,
        sorting: Sorting,
        *,
        few: bool,
    ) -> None:
        self._db = db
        self._statement = sql["read_jobs"]
        self._condition = condition
        self._sorting = sorting
        self._few = few
        self._column = _columns(sql)[sorting.key]
        self._indexed, self._bound = self._column, "?"
        if sorting.key is SortKey.NAME:
            self._indexed, self._bound = map(sql.prefix_of, (self._column, "?"))
        self._hidden = sql.unindexed if few else ""
        index = _INDEXES.get(sorting.key)
        self._index = "" if index is None else sql.by_index(index)

    def jobs(self, limit: int) -> list[Job]:
        """Read those with a value, and then those without one."""
        place, found = self._sorting.place, list[Job]()
        if place is None or place[0] is not None:
            found = self._with_value(limit)
        if len(found) < limit and self._sorting.key in _NULLABLE:
            found += self._without_value(limit - len(found))
        return found

    def _with_value(self, limit: int) -> list[Job]:
        column, descending = self._column, self._sorting.descending
        where, values = f"{column} IS NOT NULL", list[object]()
        if self._sorting.place is not None:
            value, number = self._sorting.place
            after = "<" if descending else ">"
            where += (
                f" AND {self._indexed} {after}= {self._bound} AND ({column} {after} ?"
                f" OR {column} = ? AND j.id {after} ?)"
            )
            values = [value, value, value, number]
        way = "DESC" if descending else "ASC"
        columns = dict.fromkeys((self._indexed, column))
        terms = (f"{self._hidden}({one}) {way}" for one in columns)
        order = ", ".join((*terms, f"j.id {way}"))
        index = "" if self._few else self._index
        return self._read(index, (where, values), order, limit)

    def _without_value(self, limit: int) -> list[Job]:
        where, values, index = f"{self._column} IS NULL", list[object](), self._index
        if self._sorting.key is SortKey.ENDED:
            # Its index has none of them.
            where, index = f"{where} AND {_UNFINISHED}", ""
        place = self._sorting.place
        if place is not None and place[0] is None:
            where, values = f"{where} AND j.id < ?", [place[1]]
        order = f"{self._hidden}j.id DESC"
        return self._read("" if self._few else index, (where, values), order, limit)

    def _read(
        self, index: str, further: Condition, order: str, limit: int
    ) -> list[Job]:
        where, values = self._condition
        statement = self._statement.format(
            index=index, where=f"{where} AND {further[0]}", order=order
        )
        asked = (*values, *further[1], limit)
        return list(rows.jobs_from(self._db.execute(statement, asked)))
