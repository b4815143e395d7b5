"""Handing very short jobs over ahead of their turn.

From an end to the next start lie a commit and four changes of process, some two
milliseconds: nothing to a training run, longer than `true` itself. Where jobs of a
queue have lately been that short, the next ones are committed as starting and sent
ahead, each to be started the moment its leader is gone, on exactly the leader's units.

The scheduler only agrees while a single shape waits, so nobody is overtaken. What does
not get its turn within `PATIENCE_S`, because its leader turned out long, is recalled
and queued again in its old place; so is everything when its queue is paused and after a
restart.
"""

from grass.broker.core.state import State
from grass.errors import ProtocolError
from grass.link.messages import Recall
from grass.model.ids import attempt_id
from grass.model.job import Attempt, Job

SHORT_S = 0.05
"""Jobs that run longer than this on average are not handed ahead."""
AHEAD_S = 0.02
"""How much work is handed ahead to each leader."""
MOST_AHEAD = 8
ENOUGH = 3
"""With so many behind it, an end may wait for others to be committed with it."""
PATIENCE_S = 0.2
_WEIGHT = 0.2
"""How much the last run counts in the average."""


def learn(state: State, job: Job, attempt: Attempt) -> None:
    """Remember how long jobs of this queue and spec run."""
    took_s = attempt.ran_s
    if attempt.pid is None or took_s is None:
        return
    key, durations = (job.queue, job.spec), state.prefetched.durations
    known = durations.get(key)
    if known is None and len(durations) >= 1000:
        durations.clear()
    durations[key] = took_s if known is None else known + _WEIGHT * (took_s - known)


def let_go(state: State, attempt: Attempt) -> None:
    """Release an attempt's units, and let who follows it have them."""
    state.returns.asked.discard(attempt.job)
    follower = state.scheduler.follower(attempt.job)
    heir = state.scheduler.release(attempt.job)
    if follower is not None:
        leader = state.scheduler.predecessor(follower)
        state.attempts[follower].after = leader if isinstance(leader, int) else None
        # After a restart it must not be taken to follow one that is gone, or that
        # waits again and may by then follow it.
        state.save_attempt(state.attempts[follower])
    if heir is not None:
        state.prefetched.leaders.append(heir)


def may_wait(state: State, attempt: str) -> bool:
    """Tell whether an end is no news to its units: enough others follow already."""
    try:
        job = attempt_id(attempt).job
    except ProtocolError:
        # Refused, where it is taken in, like any other nonsense.
        return False
    return state.scheduler.prefetched_count(job) >= ENOUGH


def depth(state: State, job: Job) -> int:
    """Tell how many jobs may be handed ahead to follow this one."""
    pace_s = state.prefetched.durations.get((job.queue, job.spec))
    if pace_s is None or pace_s > SHORT_S or _counts_failures(state, job):
        return 0
    if _asked_back(state, job):
        return 0
    return min(MOST_AHEAD, max(1, int(AHEAD_S / max(pace_s, 1e-6))))


def _asked_back(state: State, job: Job) -> bool:
    """Tell whether the last of a line leaves it: nobody may follow one that is gone."""
    last = job.id
    while (behind := state.scheduler.follower(last)) is not None:
        last = behind
    return last != job.id and last not in state.prefetched.sent


def _counts_failures(state: State, job: Job) -> bool:
    """Tell whether a failure of this job may pause the queue: then each end matters."""
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
    return late


def wake_at(state: State) -> float | None:
    """Tell when the oldest job handed ahead will have waited too long."""
    since_s = next(iter(state.prefetched.sent.values()), None)
    return None if since_s is None else since_s + PATIENCE_S


def recall_all(state: State, queue: str | None) -> None:
    """Ask for everything back that was handed ahead, of one queue or of all."""
    known = [job for job in state.prefetched.sent if job in state.jobs]
    recall(state, [job for job in known if queue in (None, state.jobs[job].queue)])


def recall(state: State, jobs: list[int]) -> None:
    """Ask for jobs back that have not had their turn."""
    waiting = [job for job in jobs if _waits_for_its_turn(state, job)]
    for job in jobs:
        state.prefetched.sent.pop(job, None)
    ask_back(state, waiting)


def ask_back(state: State, jobs: list[int]) -> None:
    """Ask for attempts back that the worker may never have seen."""
    recalls: dict[str, Recall] = {}
    for job in jobs:
        attempt = state.attempts[job]
        state.returns.asked.add(job)
        recall = recalls.setdefault(attempt.worker, Recall([], []))
        recall.attempts.append(state.attempt_id(attempt))
        recall.placed_at.append(attempt.started_at)
    for worker, recall in recalls.items():
        state.batch.send(worker, recall)


def _waits_for_its_turn(state: State, job: int) -> bool:
    attempt = state.attempts.get(job)
    return attempt is not None and attempt.after is not None
