"""Attempts of jobs that have ended, as the store in memory tells them."""

from collections.abc import Iterable

from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.store.interface import AttemptSpan


def spans_since(
    tried: Iterable[tuple[Job, Attempt]], at: int, limit: int, after: AttemptSpan | None
) -> list[AttemptSpan]:
    """Return one page, those of the job that ended last first."""
    ended = [_span(job, one) for job, one in tried if (job.finished_at or -1) >= at]
    ended.sort(key=_place, reverse=True)
    if after is not None:
        ended = [one for one in ended if _place(one) < _place(after)]
    return ended[:limit]


def _place(span: AttemptSpan) -> tuple[int, int, int]:
    return span.job_finished_at, span.job, span.number


def _span(job: Job, attempt: Attempt) -> AttemptSpan:
    state = job.state
    if attempt.number != job.attempts:
        lost = attempt.state is AttemptState.LOST
        state = JobState.LOST if lost else JobState.FAILED
    ended = job.finished_at or 0
    return AttemptSpan(
        job.id,
        attempt.number,
        job.owner,
        state,
        attempt.worker,
        attempt.allocation,
        attempt.started_at,
        ended if attempt.finished_at is None else attempt.finished_at,
        ended,
    )
