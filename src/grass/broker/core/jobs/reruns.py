"""Running ended jobs again, changed or as they were.

An ended job is loaded into memory again with its spec and environment, as if it had
never started; the count of its attempts goes on.
"""

from collections.abc import Sequence
from copy import copy

from msgspec.structs import replace

from grass.broker.core.attempts import avoided
from grass.broker.core.calls import Done, Found, Rerun
from grass.broker.core.jobs import (
    array_limits,
    bulk_calls,
    dependency_edits,
    dependency_graph,
    eligibility,
)
from grass.broker.core.jobs.bulk_calls import BulkCall, Work
from grass.broker.core.jobs.edits import Change, Edited
from grass.broker.core.jobs.enqueue import ends_of
from grass.broker.core.jobs.verbs import MOST_WARNINGS
from grass.broker.core.state import State
from grass.errors import Busy, GrassError, NotFound, Refused
from grass.model.jobs.dependencies import After
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.model.jobs.spec import NO_INPUT, Spec, given


def rerun(state: State, call: Rerun) -> Done | BulkCall:
    """Give ended jobs a new attempt; those that have not ended are left alone."""
    return bulk_calls.begin(state, _rerun(state, call), call.found)


def first_read(jobs: list[int]) -> list[int]:
    """Return the jobs that are read from the store before the call is applied."""
    return list(dict.fromkeys(jobs))[: bulk_calls.SLICE]


def _rerun(state: State, call: Rerun) -> Work:
    yield from dependency_edits.catch_up(state)
    again = _Again(state, call)
    parts = bulk_calls.parts(list(dict.fromkeys(call.jobs)))
    found = Found()
    try:
        for part in parts:
            found = (yield list(part)) or Found()
            again.check(part, found)
        again.check_together()
        for part in parts:
            if len(parts) > 1:
                yield from dependency_edits.catch_up(state)
                found = (yield list(part)) or Found()
                for _ in dependency_edits.catch_up(state):
                    """Little has come since: it is looked at in this slice."""
            again.revive(part, found)
        yield from bulk_calls.each(again.done.jobs, again.enter)
    finally:
        again.close()
    again.done.changed = bool(again.done.jobs)
    return again.done


class _Again:
    """The jobs of a call that are run again, checked before any of them is."""

    def __init__(self, state: State, call: Rerun) -> None:
        self._state = state
        self._call = call
        # The input of the last attempt is gone.
        self._change = Change(state, replace(call.patch, stdin=NO_INPUT))
        self._specs: dict[int, Spec] = {}
        """One object for each, whichever slice it was read for."""
        self._together: dict[int, tuple[After, ...]] = {}
        self._ends: dict[int, JobState] = {}
        self._guests: set[int] = set()
        self._kept = dependency_edits.Remembered(state)
        self.done = Done()

    def check(self, part: Sequence[int], found: Found) -> None:
        """Refuse what cannot run again."""
        ends = ends_of(found)
        self._ends |= ends
        for number in part:
            one = self._edited(number, found)
            if one is None:
                self._leave_alone(number)
            else:
                self._together[number] = one.open_after
                if one.old.stdin != NO_INPUT:
                    self._warn(f"job {number} runs again without its input")
                self._kept.remember(one.open_after, ends)

    def check_together(self) -> None:
        """Refuse jobs that would wait in a circle, or for what can never happen."""
        jobs = self._call.jobs
        if len(jobs) == 1 and not self._together:
            first = f"`grass cancel {jobs[0]}` first"
            hint = "run its program again" if self._guests else first
            raise Refused(self.done.warnings[0], hint)
        dependency_edits.check(
            self._state, self._call.actor, self._together, self._ends, self._together
        )

    def revive(self, part: Sequence[int], found: Found) -> None:
        """Load jobs into memory again, but not those that cannot any more."""
        for number in part:
            one = self._unchanged(number, found)
            if one is not None:
                _revive(self._state, one, self._call, self._change, found)
                self.done.jobs.append(number)

    def _unchanged(self, number: int, found: Found) -> Edited | None:
        """Return a job that was checked; None: it was pruned or run again meanwhile.

        Others run again already, so this refuses nothing.
        """
        if number not in self._together:
            return None
        try:
            return self._edited(number, found)
        except GrassError as error:
            self._warn(error.message)
            return None

    def enter(self, number: int) -> None:
        """Let a job wait or queue, once all jobs are loaded that it may wait for."""
        job = self._state.jobs.get(number)
        if job is not None and job.state in (JobState.HELD, JobState.WAITING):
            eligibility.enter(self._state, job)

    def close(self) -> None:
        """Release the specs and the ends of jobs that the call holds."""
        self._change.close()
        self._kept.forget()

    def _edited(self, number: int, found: Found) -> Edited | None:
        job = _ended(self._state, number, found)
        if job is None:
            return None
        spec = _spec_of(self._state, job, found)
        if spec.guest is not None:
            self._guests.add(number)
            return None
        return self._change.to(job, self._specs.setdefault(job.spec, spec))

    def _leave_alone(self, number: int) -> None:
        guest = number in self._guests
        why = "was a guest of its process" if guest else "has not ended"
        self._warn(f"job {number} {why}")

    def _warn(self, text: str) -> None:
        if len(self.done.warnings) < MOST_WARNINGS:
            self.done.warnings.append(text)


def _revive(
    state: State, one: Edited, call: Rerun, change: Change, found: Found
) -> None:
    job = one.job
    if one.spec.base_env in found.envs:
        state.envs.restore(found.envs[one.spec.base_env])
    dependency_graph.running_again(state, job.id)
    job.started_at = job.finished_at = job.exit_code = job.signal = job.reason = None
    job.stopping_since = job.not_before = None
    job.failures = job.losses = 0
    state.jobs[job.id] = job
    state.totals.unfinished[job.queue] += 1
    state.specs.restore(job.spec, one.old)
    array_limits.join(state, job.common)
    avoided.forget_kind(state, job)
    change.apply(one)
    state.move_job(job, JobState.HELD if call.hold else JobState.WAITING)
    state.note_by(call.actor, "rerun", job.id, changed=sorted(given(call.patch)))


def _ended(state: State, number: int, found: Found) -> Job | None:
    """Return a job that ended: in this batch, or as the store has it."""
    if number in state.jobs:
        return None
    known = state.batch.changes.jobs.get(number)
    if known is None:
        if number not in found.jobs or number in state.batch.changes.removed_jobs:
            raise NotFound(f"there is no job {number}")
        known = found.jobs[number].job
    # The caller of `wait` gets the job as it ended, so that object is not changed.
    return copy(known) if known.state in ENDED else None


def _spec_of(state: State, job: Job, found: Found) -> Spec:
    known = found.jobs.get(job.id)
    if known is not None and known.job.spec == job.spec:
        return known.spec
    spec = state.specs.new.get(job.spec)
    if spec is not None and (spec.base_env is None or spec.base_env in state.envs):
        return spec
    raise Busy(f"job {job.id} has only just ended", "try again in a moment")
