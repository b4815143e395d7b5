"""Prefetch: very short jobs are sent to a worker before units are free for them.

Between the end of a job and the next start are a commit and four context switches, some
two milliseconds: nothing for a training run, longer than `true` itself. With workers on
other machines it is ten times that. Where jobs of a queue have lately been short, the
next ones are committed as starting and sent ahead; the keeper starts each when its
predecessor has ended, on the same units.

The scheduler prefetches only while a single shape waits, so no job is overtaken. A job
that has not started within `PATIENCE_S`, because its predecessor runs longer, is
recalled and queued again in its old place; so is every prefetched job when its queue is
paused and after a restart.
"""

from grass.broker.core.attempts import held_back
from grass.broker.core.state import State
from grass.errors import ProtocolError
from grass.link.messages import Recall
from grass.model.ids import attempt_id
from grass.model.jobs.job import Attempt, Job

SHORT_S = 0.15
"""Jobs that run longer than this on average are not prefetched."""
AHEAD_S = 0.05
"""How much work is prefetched behind each running job."""
FIRST_AHEAD, MOST_AHEAD = 8, 64
"""How many jobs are prefetched at first, and once they have all had their turn."""
ENOUGH = 3
"""With this many followers, an exit may wait to be committed together with others."""
GATHER_S, MOST_GATHER_S = 0.004, 0.02
"""How long exits of short jobs may gather, while followers use their units."""
PATIENCE_S = 0.3
"""So long a prefetched job waits for its turn: twice as long as a short job takes."""
_WEIGHT = 0.2
"""How much the last run counts in the average."""
_MORE = 0.5
"""How many more are prefetched after each that had its turn in time."""


def note_duration(state: State, job: Job, attempt: Attempt) -> None:
    """Remember how long jobs of this queue and spec run."""
    took_s = attempt.ran_s
    if attempt.pid is None or took_s is None:
        return
    key, durations = (job.queue, job.spec), state.prefetched.durations
    known = durations.get(key)
    if known is None and len(durations) >= 1000:
        durations.clear()
        state.prefetched.most.clear()
    most = state.prefetched.most
    most[key] = min(MOST_AHEAD, most.get(key, FIRST_AHEAD) + _MORE)
    durations[key] = took_s if known is None else known + _WEIGHT * (took_s - known)


def release(state: State, attempt: Attempt) -> None:
    """Release an attempt's units, which go to its follower if it has one."""
    state.returns.asked.discard(attempt.job)
    follower = state.scheduler.follower(attempt.job)
    next_job = state.scheduler.release(attempt.job)
    if follower is not None:
        before = state.scheduler.predecessor(follower)
        state.attempts[follower].after = before if isinstance(before, int) else None
        # After a restart its predecessor must not be one that has ended, or that
        # waits again and may by then be its follower.
        state.save_attempt(state.attempts[follower])
    if next_job is not None:
        state.prefetched.started.append(next_job)


def may_wait_s(state: State, attempt: str) -> float:
    """Return how long an exit may wait to be committed with others; 0: not at all.

    With enough followers it may: for half of the time that these take.
    """
    try:
        job = attempt_id(attempt).job
    except ProtocolError:
        # It is refused where messages are applied.
        return 0.0
    count = state.scheduler.last_prefetched(job)[1]
    if count < ENOUGH:
        return 0.0
    duration_s = _usual_s(state, state.jobs[job]) or 0.0
    return min(MOST_GATHER_S, max(GATHER_S, count * duration_s / 2))


def depth(state: State, job: Job) -> int:
    """Return how many jobs may be prefetched behind this one."""
    duration_s = _usual_s(state, job)
    if duration_s is None or duration_s > SHORT_S or _counts_failures(state, job):
        return 0
    if _last_is_recalled(state, job) or _fails_there(state, job):
        return 0
    most = int(state.prefetched.most.get((job.queue, job.spec), FIRST_AHEAD))
    return min(most, max(1, int(AHEAD_S / max(duration_s, 1e-6))))


def _fails_there(state: State, job: Job) -> bool:
    """Return whether such jobs fail at once where this one runs."""
    attempt = state.attempts.get(job.id)
    return attempt is not None and held_back.fails_at_once(state, job, attempt.worker)


def _usual_s(state: State, job: Job) -> float | None:
    return state.prefetched.durations.get((job.queue, job.spec))


def _last_is_recalled(state: State, job: Job) -> bool:
    """Tell whether the last prefetched job behind this one is being recalled."""
    last, count = state.scheduler.last_prefetched(job.id)
    return count > 0 and last not in state.prefetched.sent


def _counts_failures(state: State, job: Job) -> bool:
    """Tell whether a failure of this job may pause the queue: none may be deferred."""
    queue = state.queues.get(job.queue)
    counted = queue is not None and queue.max_fails is not None
    return counted or state.specs[job.spec].max_fails is not None


def overdue(state: State, now_s: float) -> list[int]:
    """Take out the jobs that have waited too long for their turn."""
    late = []
    for job, since_s in list(state.prefetched.sent.items()):
        attempt = state.attempts.get(job)
        if attempt is None or attempt.after is None:
            del state.prefetched.sent[job]
        elif since_s + PATIENCE_S <= now_s:
            del state.prefetched.sent[job]
            late.append(job)
        else:
            break
    _prefetch_fewer(state, late)
    return late


def _prefetch_fewer(state: State, late: list[int]) -> None:
    """Send half as many ahead from now on: the machine is slower than jobs are short.

    What jobs take that run is not all that a turn takes.
    """
    jobs = [state.jobs[number] for number in late]
    for key in {(job.queue, job.spec) for job in jobs}:
        most = state.prefetched.most
        most[key] = max(1.0, most.get(key, FIRST_AHEAD) / 2)


def wake_at(state: State) -> float | None:
    """Return when the oldest prefetched job will have waited too long."""
    since_s = next(iter(state.prefetched.sent.values()), None)
    return None if since_s is None else since_s + PATIENCE_S


def recall_all(state: State, queue: str | None) -> None:
    """Recall every prefetched job, of one queue or of all."""
    known = [job for job in state.prefetched.sent if job in state.jobs]
    recall(state, [job for job in known if queue in (None, state.jobs[job].queue)])


def recall(state: State, jobs: list[int]) -> None:
    """Ask for jobs back that have not had their turn."""
    waiting = [job for job in jobs if _is_prefetched(state, job)]
    for job in jobs:
        state.prefetched.sent.pop(job, None)
    request_return(state, waiting)


def request_return(state: State, jobs: list[int]) -> None:
    """Ask workers to return attempts, which they may never have seen."""
    recalls: dict[str, Recall] = {}
    for job in jobs:
        attempt = state.attempts[job]
        state.returns.asked.add(job)
        recall = recalls.setdefault(attempt.worker, Recall([], []))
        recall.attempts.append(state.attempt_id(attempt))
        recall.placed_at.append(attempt.started_at)
    for worker, recall in recalls.items():
        state.batch.send(worker, recall)


def _is_prefetched(state: State, job: int) -> bool:
    attempt = state.attempts.get(job)
    return attempt is not None and attempt.after is not None
