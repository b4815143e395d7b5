"""Reading ended jobs from the store for calls that are about them."""

from collections.abc import Callable
from typing import Any

from grass.broker.core.calls import Found, Reading
from grass.store import Store


def unread(call: Reading[Any]) -> bool:
    """Tell whether a call still misses what it is about."""
    return bool(call.wanted) and call.found is None


def found(wanted: list[int]) -> Callable[[Store], Found]:
    """Make the query for jobs with all that is needed to run them again."""

    def query(store: Store) -> Found:
        jobs = {one.job.id: one for one in store.details(wanted)}
        others = {after.job for one in jobs.values() for after in one.spec.after}
        jobs |= {one.job.id: one for one in store.details(sorted(others - jobs.keys()))}
        needed = {one.spec.base_env for one in jobs.values()} - {None}
        envs = store.environments(sorted(number for number in needed if number))
        return Found(jobs, {env.id: env for env in envs})

    return query


def paths_of(removal: int) -> Callable[[Store], list[str]]:
    """Make the query for the files of a removal."""
    return lambda store: store.removal_paths(removal)
