"""What an attempt's end means for its job: pure, nothing is changed here."""

from grass.keeper.exit_reasons import GUEST_GAVE_UP, TIME_LIMIT
from grass.link.messages import Exited
from grass.model.jobs.endings import OUT_OF_GPU_MEMORY, OUT_OF_HOST_MEMORY
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import Spec

FORGOTTEN = "its worker was forgotten"
"""The reason of an attempt that may be alive on a worker that was forgotten."""
LONGEST_BACKOFF_S = 86_400.0
WANT_OF_MEMORY = frozenset({OUT_OF_GPU_MEMORY, OUT_OF_HOST_MEMORY})
MOST_SHORT_OF_MEMORY = 3
"""A job that ended for want of memory is queued again at most so often."""


def outcome(job: Job, ended: Exited) -> JobState:
    """Tell how a job ends with this attempt, if it is its last."""
    if ended.lost:
        return JobState.LOST
    if job.stopping_since is not None or ended.reason == GUEST_GAVE_UP:
        return JobState.CANCELLED
    clean = ended.exit_code == 0 and ended.reason is None
    return JobState.SUCCEEDED if clean else JobState.FAILED


def retried(job: Job, spec: Spec, end: JobState, ended: Exited) -> bool:
    """Tell whether another attempt follows.

    A lost attempt is followed only where the job allows it: it may have done its work.
    """
    if job.stopping_since is not None:
        return False
    if end is JobState.LOST:
        return job.losses < spec.retry_lost
    if end is not JobState.FAILED or not _has_retries(job, spec, ended):
        return False
    return not spec.retry_on or not _causes(ended).isdisjoint(spec.retry_on)


def _has_retries(job: Job, spec: Spec, ended: Exited) -> bool:
    """Tell whether retries are left; a failure that is another's fault costs none."""
    if ended.cause in WANT_OF_MEMORY and spec.short_of_memory >= MOST_SHORT_OF_MEMORY:
        return False
    return spec.retries > (0 if ended.blamed else job.failures)


def backoff_s(spec: Spec, failures: int) -> float:
    """Return the pause before a retry: twice as long after every failure."""
    return min(LONGEST_BACKOFF_S, spec.backoff_s * 2.0 ** min(failures - 1, 60))


def _causes(ended: Exited) -> frozenset[str]:
    """Name a failure in every way that `--retry-on` may name it."""
    causes = set()
    if ended.reason == TIME_LIMIT:
        causes.add("time-limit")
    if ended.cause in WANT_OF_MEMORY:
        causes.add("out-of-memory")
    if ended.signal is not None:
        causes |= {"signal", str(128 + ended.signal)}
    elif ended.exit_code is not None:
        causes.add(str(ended.exit_code))
    else:
        causes.add("not-started")
    return frozenset(causes)
