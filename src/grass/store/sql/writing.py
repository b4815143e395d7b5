"""Writing the changes of one transaction: a statement for each kind of change."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from grass.model.jobs.job import Job
from grass.model.usage.held_sums import oldest_kept
from grass.store.changes import Changes, Event
from grass.store.sql import rows
from grass.store.sql.dialect import Connection, Dialect, Row
from grass.store.sql.job_counts import Arriving, Counting


def write(
    db: Connection,
    sql: Dialect,
    changes: Changes,
    arriving: Arriving,
    last_event: int | None = None,
) -> None:
    """Execute what writes these changes, inside a transaction of the caller.

    Lines of the journal get the numbers after the last one; None: the database gives
    them.
    """
    counting = Counting(db, sql, changes, arriving)
    db.executemany(sql["add_env"], (sql.sealed(env)[:3] for env in changes.envs))
    for statement, values_of, row in _WRITES:
        values = values_of(changes)
        if values:
            db.executemany(sql[statement], map(row, values))
    if changes.events:
        db.executemany(sql["add_event"], _numbered(changes.events, last_event))
    if changes.removed_jobs:
        for name in ("remove_events_of", "remove_attempts_of", "remove_job"):
            db.executemany(sql[name], _columns(changes.removed_jobs))
        db.execute(sql["remove_old_worker_events"])
    if changes.held_sums:
        oldest = oldest_kept(changes.held_sums)
        db.execute(sql["remove_old_held_sums"], (oldest,))
    db.executemany(sql["remove_unused_spec"], _columns(changes.unused_specs))
    db.executemany(sql["remove_unused_env"], _columns(changes.unused_envs))
    counting.write()


def _numbered(events: list[Event], last: int | None) -> Iterable[Row]:
    if last is None:
        return events
    return ((number, *event) for number, event in enumerate(events, last + 1))


def _columns(values: Iterable[int]) -> Iterable[Row]:
    return ((value,) for value in values)


def _key(value: object) -> Row:
    return (value,)


def _same(row: Row) -> Row:
    return row


def _jobs(changes: Changes, *, moved: bool) -> list[Job]:
    """Return the jobs that have only moved, which take less, or the others."""
    before = changes.before
    return [
        job
        for id, job in changes.jobs.items()
        if (id in before and before[id][1] is job.common) is moved
    ]


def _functions(changes: Changes) -> list[Row]:
    """Return the specs that call a function, each with its blob."""
    tasks = ((number, spec.task) for number, spec in changes.specs.items())
    return [(number, task.function) for number, task in tasks if task is not None]


def _arguments(changes: Changes) -> list[Row]:
    """Return the jobs whose arguments are a blob, each with its blob."""
    jobs = changes.jobs.values()
    return [(job.id, job.arguments_blob) for job in jobs if job.arguments_blob]


_WRITES: list[tuple[str, Callable[[Changes], Collection[Any]], Callable[..., Row]]]
_WRITES = [
    ("save_meta", lambda changes: changes.meta.items(), _same),
    ("add_spec", lambda changes: changes.specs.items(), rows.spec_row),
    ("name_function", _functions, _same),
    ("save_worker", lambda changes: changes.workers.values(), rows.worker_row),
    # Removals first: one batch may delete a queue and create it again.
    ("remove_view", lambda changes: changes.removed_views, _same),
    ("remove_worker", lambda changes: changes.removed_workers, _key),
    ("remove_queue", lambda changes: changes.removed_queues, _key),
    ("save_queue", lambda changes: changes.queues.values(), rows.queue_row),
    ("save_view", lambda changes: changes.views.items(), rows.view_row),
    ("save_job", lambda changes: _jobs(changes, moved=False), rows.job_row),
    ("move_job", lambda changes: _jobs(changes, moved=True), rows.job_row),
    ("name_arguments", _arguments, _same),
    ("remove_attempt", lambda changes: changes.removed_attempts, _same),
    ("save_attempt", lambda changes: changes.attempts.values(), rows.attempt_row),
    ("add_arrival", lambda changes: changes.arrivals, _same),
    ("remove_arrival", lambda changes: changes.removed_arrivals, _key),
    ("remove_array", lambda changes: changes.removed_arrays, _key),
    ("save_array", lambda changes: changes.arrays.items(), _same),
    # Removals first: a machine that joins again gets a new token of the same name.
    ("remove_token", lambda changes: changes.removed_tokens, _key),
    ("save_token", lambda changes: changes.tokens.values(), rows.token_row),
    # Removals first: a pool that was removed may be added again.
    ("remove_pool", lambda changes: changes.removed_pools, _key),
    ("save_pool", lambda changes: changes.pools.values(), rows.pool_row),
    ("remove_pilot", lambda changes: changes.removed_pilots, _key),
    ("save_pilot", lambda changes: changes.pilots.values(), rows.pilot_row),
    # Removals first: a type that was forgotten may be measured in the same batch.
    ("remove_profile", lambda changes: changes.removed_profiles, _same),
    ("save_profile", lambda changes: changes.profiles.values(), rows.profile_row),
    ("add_held_sum", lambda changes: changes.held_sums.items(), rows.held_sum_row),
    ("add_removal", lambda changes: changes.removals, rows.removal_row),
    ("remove_removal", lambda changes: changes.removed_removals, _key),
    ("add_call", lambda changes: changes.calls, _same),
]
"""Statement, what of the changes it writes, and how a value becomes a row."""
