"""Guests: jobs without a command, run by a process that is there already.

A guest waits, is placed and is shown as any other job. Its attempt ends with its
process, or when that process gives it back. What was given back is stored with the
attempt, and said again to a worker that may have missed it.
"""

from grass.broker.core.attempts import tracking
from grass.broker.core.calls import Done, GiveBackGuest, MeasureGuest
from grass.broker.core.state import State
from grass.errors import Refused
from grass.keeper.exit_reasons import GUEST_GAVE_UP
from grass.link.messages import GiveBack, NoteProfile
from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import JobState


def give_back(state: State, call: GiveBackGuest) -> Done:
    """End a guest, whether it has its units or waits for them.

    Its process is not signalled, as `cancel` would do. One that is over is left alone.
    """
    job = state.jobs.get(call.job)
    if job is None:
        return Done(changed=False)
    if state.specs[job.spec].guest is None:
        raise Refused(f"job {job.id} is no guest", f"`grass cancel {job.id}` ends it")
    attempt = state.attempts.get(job.id)
    if attempt is None:
        if job.state is JobState.QUEUED:
            state.scheduler.remove(job.id)
        tracking.give_up(state, job, GUEST_GAVE_UP)
        return Done([job.id])
    if call.exit_code is None:
        # The keeper sees how it ended.
        return Done(changed=False)
    if attempt.given_back is None:
        attempt.given_back = call.exit_code
        state.save_attempt(attempt)
    _send_give_back(state, attempt, attempt.given_back)
    return Done([job.id])


def measure(state: State, call: MeasureGuest) -> Done:
    """Have its worker tell what a guest uses of a GPU."""
    attempt = state.attempts.get(call.job)
    if attempt is not None:
        state.batch.send(attempt.worker, NoteProfile(state.attempt_id(attempt)))
    return Done([call.job], changed=attempt is not None)


def repeat_give_back(state: State, attempt: Attempt) -> None:
    """Tell a worker once more what it may have missed."""
    if attempt.given_back is not None:
        _send_give_back(state, attempt, attempt.given_back)


def _send_give_back(state: State, attempt: Attempt, exit_code: int) -> None:
    """Tell the worker of a guest that it is done."""
    state.batch.send(attempt.worker, GiveBack(state.attempt_id(attempt), exit_code))
