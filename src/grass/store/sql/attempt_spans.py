"""Attempts of jobs that have ended, a page at a time: who held what, for how long."""

from operator import attrgetter

import msgspec

from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.resources import Allocation
from grass.store.bodies import from_json
from grass.store.interface import AttemptSpan
from grass.store.sql.dialect import Connection, Row

_LATEST = 2**62
_place = attrgetter("job_finished_at", "job", "number")


class _Body(msgspec.Struct, gc=False):
    """What is needed of an attempt's body."""

    worker: str
    allocation: Allocation
    started_at: int
    finished_at: int | None = None


def page(
    db: Connection,
    statement: str,
    at: int,
    limit: int,
    after: AttemptSpan | None,
) -> list[AttemptSpan]:
    """Read one page, those of the job that ended last first."""
    place = (_LATEST, 0, 0) if after is None else _place(after)
    found = db.execute(statement, (at, place[0], *place, limit))
    return [_span(row) for row in found]


def _span(row: Row) -> AttemptSpan:
    job, number, state, text, owner, job_state, attempts, job_finished_at = row
    body = from_json(text, _Body, f"of attempt {job}.{number}")
    if number == attempts:
        ended_as = JobState(job_state)
    else:
        ended_as = JobState.LOST if state == AttemptState.LOST else JobState.FAILED
    finished_at = job_finished_at if body.finished_at is None else body.finished_at
    return AttemptSpan(
        job,
        number,
        owner,
        ended_as,
        body.worker,
        body.allocation,
        body.started_at,
        finished_at,
        job_finished_at,
    )
