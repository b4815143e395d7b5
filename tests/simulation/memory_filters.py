"""Filters of jobs, for the store in memory."""

from collections.abc import Callable
from typing import Any

from grass.model.jobs.job import Job
from grass.store.interface import JobFilter, Order, Sorting

_ORDERS: dict[Order, Callable[[Job], Any]] = {
    Order.NEWEST: lambda job: -job.id,
    Order.OLDEST: lambda job: job.id,
    Order.NEXT: lambda job: (-job.priority, job.id),
    Order.FINISHED: lambda job: (-(job.finished_at or 0), -job.id),
}


def page(known: list[Job], wanted: JobFilter) -> list[Job]:
    """Return the jobs that a filter matches, in its order."""
    found = [job for job in wanted.selection.among(known) if _fits(job, wanted)]
    return sorted(found, key=_ORDERS[wanted.order])


def in_order(found: list[Job], sorting: Sorting) -> list[Job]:
    """Return jobs as a sorting has them, those that follow on its place."""
    places = {job.id: sorting.place_of(job) for job in found}
    valued = [job for job in found if places[job.id][0] is not None]
    valued.sort(key=lambda job: places[job.id], reverse=sorting.descending)
    missing = [job for job in found if places[job.id][0] is None]
    every = valued + sorted(missing, key=lambda job: -job.id)
    begins = [places[job.id] for job in every].index
    return every if sorting.place is None else every[begins(sorting.place) + 1 :]


def _fits(job: Job, wanted: JobFilter) -> bool:
    named = (
        getattr(wanted, field) in (None, getattr(job, field))
        for field in ("queue", "project", "name", "owner")
    )
    return (
        (not wanted.states or job.state in wanted.states)
        and all(named)
        and (wanted.before is None or job.id < wanted.before)
        and (wanted.after is None or job.id > wanted.after)
        and (wanted.array is None or (job.array or 0) == wanted.array)
        and (wanted.order is not Order.FINISHED or job.finished_at is not None)
    )
