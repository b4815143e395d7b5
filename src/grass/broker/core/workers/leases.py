"""Leases: workers that end their own attempts when they are cut off.

Such a worker's keeper has a lease, which every message from the broker renews; when it
expires the keeper ends each attempt with the attempt's own grace. The broker cannot see
that. It counts from the moment the worker disconnected, on a monotonic clock: after
lease, grace and a margin the attempt has ended, and it is lost. Before that nothing
happens, and a worker without a lease is waited for without end.

A worker also counts as disconnected after the core was rebuilt, until it has reported.
Where its link is still there, its lease is renewed all the same, and the count begins
again each time: so the broker always waits longer than the keeper.
"""

from grass.broker.core.attempts import tracking
from grass.broker.core.state import State
from grass.broker.core.workers.worker_memory import Absence
from grass.model.jobs.job import Attempt
from grass.model.worker import Worker

MARGIN_S = 10.0
MARGIN_SHARE = 0.1
"""How much longer than lease and grace the broker waits."""


def gone(state: State, worker: Worker) -> None:
    """Begin to count, with the next decision, for a worker that has a lease."""
    if worker.lease_s is not None:
        state.absences[worker.id] = Absence(worker.lease_s)


def back(state: State, worker: str) -> None:
    """Stop counting: the worker reports its attempts."""
    state.absences.pop(worker, None)


def renewed(state: State, worker: str) -> None:
    """Count again, from the next decision: the worker's lease was renewed."""
    absence = state.absences.get(worker)
    if absence is not None:
        absence.since_s = absence.next_s = None


def run_out(state: State, now_s: float) -> None:
    """Lose the attempts that must have ended by now."""
    for worker, absence in state.absences.items():
        if absence.since_s is None:
            absence.since_s = now_s
            _plan(state, worker, absence)
        if absence.next_s is not None and absence.next_s <= now_s:
            _lose(state, worker, absence, now_s)
            _plan(state, worker, absence)


def wake_at(state: State) -> float | None:
    """Return when the next attempt is lost."""
    planned = (absence.next_s for absence in state.absences.values())
    return min((at for at in planned if at is not None), default=None)


def over_at(state: State, attempt: Attempt) -> float | None:
    """Return when an attempt of a disconnected worker is lost; None: not by time."""
    absence = state.absences.get(attempt.worker)
    if absence is None or absence.since_s is None:
        return None
    return _over_at(state, absence, attempt)


def _lose(state: State, worker: str, absence: Absence, now_s: float) -> None:
    assert absence.since_s is not None
    away_s = round(now_s - absence.since_s)
    reason = f"its worker was cut off for {away_s} s and has ended it"
    for attempt in state.attempts_on(worker):
        if _over_at(state, absence, attempt) <= now_s:
            tracking.lose(state, state.jobs[attempt.job], attempt, reason)


def _plan(state: State, worker: str, absence: Absence) -> None:
    ends = [_over_at(state, absence, one) for one in state.attempts_on(worker)]
    absence.next_s = min(ends, default=None)


def _over_at(state: State, absence: Absence, attempt: Attempt) -> float:
    assert absence.since_s is not None
    grace_s = state.specs[state.jobs[attempt.job].spec].grace_s
    margin_s = MARGIN_S + MARGIN_SHARE * absence.lease_s
    return absence.since_s + absence.lease_s + grace_s + margin_s
