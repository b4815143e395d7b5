"""Changing jobs: those that have not started, and those that run again.

An edit gives a job another spec; who shares the old one keeps it. Everything is checked
for all jobs before any is changed. What earlier ends mean for those who waited is done
first: a job that can never start now is cancelled, and neither edited nor run again.
"""

from collections.abc import Container, Iterable, Mapping
from copy import copy
from typing import Any, NamedTuple

from msgspec import structs

from grass.broker import arrays, attempts, fleet, queues, waiting
from grass.broker.arrivals import Prepared
from grass.broker.calls import Done, Edit, Found, Rerun
from grass.broker.enqueue import check_words, ends_of, known_kinds
from grass.broker.state import State
from grass.broker.verbs import MOST_WARNINGS
from grass.errors import Busy, NotFound, Refused, UsageError
from grass.model import dependencies, placeholders
from grass.model.commands import is_shell_line
from grass.model.dependencies import After
from grass.model.job import Job, Spec
from grass.model.lifecycle import ENDED, JobState
from grass.model.queue import Queue
from grass.model.sizes import LARGEST_PRIORITY

_NOT_STARTED = (JobState.HELD, JobState.WAITING, JobState.QUEUED)
_OF_THE_JOB = ("words", "shell", "name", "queue", "priority")
_OF_THE_SPEC = (
    "request",
    "begin_at",
    "time_limit_s",
    "retries",
    "cwd",
    "env",
    "worker",
    "labels",
)
_THIS_CALL = 0
"""Holds what is remembered of other jobs while a call is applied; no job has it."""


class Edited(NamedTuple):
    """A job, what it was, and what it is to become."""

    job: Job
    old: Spec
    own: dict[str, Any]
    spec: Spec

    @property
    def open_after(self) -> tuple[After, ...]:
        """What it still has to wait for: dependencies that were met count no more."""
        return (
            ()
            if self.job.met and self.spec.after == self.old.after
            else (self.spec.after)
        )


def edit(state: State, call: Edit) -> Done:
    """Change jobs that have not started: all of them, or none."""
    _catch_up(state)
    numbers = list(dict.fromkeys(call.jobs))
    jobs = [_not_started(state, number) for number in numbers]
    ends = ends_of(call.found)
    change = _Change(state, call.changes)
    edited = [change.to(job, state.specs[job.spec]) for job in jobs]
    if "after" in call.changes:
        _check_waits(state, {one.job.id: one.spec.after for one in edited}, ends, {})
    _remember(state, edited, ends)
    for one in edited:
        _take_out(state, one.job)
        _apply(state, one, change)
        waiting.enter(state, one.job)
        state.note_by(call.actor, "edited", one.job.id, changed=sorted(call.changes))
    _forget(state, edited)
    return Done(jobs=numbers)


def rerun(state: State, call: Rerun) -> Done:
    """Give ended jobs a new attempt; those that have not ended are left alone."""
    _catch_up(state)
    found = call.found or Found()
    left, edited = list[str](), list[Edited]()
    change = _Change(state, call.changes)
    for number in dict.fromkeys(call.jobs):
        job = _ended(state, number, found)
        if job is None:
            left.append(f"job {number} has not ended")
        else:
            spec = _spec_of(state, job, found)
            edited.append(change.to(job, spec))
    if len(call.jobs) == 1 and not edited:
        raise Refused(left[0], f"`grass cancel {call.jobs[0]}` first")
    together = {one.job.id: one.open_after for one in edited}
    _check_waits(state, together, ends_of(found), together)
    _remember(state, edited, ends_of(found))
    for one in edited:
        _revive(state, one, call, change)
    for one in edited:
        waiting.enter(state, one.job)
    _forget(state, edited)
    return Done([one.job.id for one in edited], left[:MOST_WARNINGS], bool(edited))


def _revive(state: State, one: Edited, call: Rerun, change: "_Change") -> None:
    job = one.job
    envs = call.found.envs if call.found is not None else {}
    if one.spec.base_env in envs:
        state.envs.restore(envs[one.spec.base_env])
    waiting.running_again(state, job.id)
    job.started_at = job.finished_at = job.exit_code = job.signal = job.reason = None
    job.stopping_since = job.not_before = None
    job.failures = job.losses = 0
    state.jobs[job.id] = job
    state.specs.restore(job.spec, one.old)
    state.specs.use(job.spec)
    arrays.join(state, job)
    _apply(state, one, change)
    state.move_job(job, JobState.HELD if call.hold else JobState.WAITING)
    state.note_by(call.actor, "rerun", job.id, changed=sorted(call.changes))


def _catch_up(state: State) -> None:
    """Finish with those who waited for ends or for a time that has come.

    Whoever may start by now does so, also if a job that it waited for is run again.
    """
    waiting.due(state)
    while state.waits.resolving:
        for job, reason in waiting.advance(state):
            attempts.give_up(state, job, reason)


def _remember(
    state: State, edited: Iterable[Edited], ends: dict[int, JobState]
) -> None:
    """Know how others ended also while nobody waits for them for a moment."""
    for after in _each_once(one.open_after for one in edited):
        waiting.remember(state, after, ends, _THIS_CALL)


def _forget(state: State, edited: Iterable[Edited]) -> None:
    for after in _each_once(one.spec.after for one in edited):
        waiting.forget(state, [each.job for each in after], _THIS_CALL)


def _each_once(all_after: Iterable[tuple[After, ...]]) -> Iterable[tuple[After, ...]]:
    """Give what jobs wait for, once for all that share it: it may be long."""
    return {id(after): after for after in all_after}.values()


def _not_started(state: State, number: int) -> Job:
    job = state.jobs.get(number)
    if job is None:
        raise Refused(f"job {number} has ended", f"`grass rerun {number} --edit`")
    if job.state not in _NOT_STARTED:
        raise Refused(f"job {number} runs already", f"`grass cancel {number}` first")
    return job


def _ended(state: State, number: int, found: Found) -> Job | None:
    """Find a job that ended: in this batch, or as the store has it."""
    if number in state.jobs:
        return None
    known = state.changes.jobs.get(number)
    if known is None:
        if number not in found.jobs or number in state.changes.removed_jobs:
            raise NotFound(f"there is no job {number}")
        known = found.jobs[number].job
    # Whoever is told of its end is told of the job as it ended.
    return copy(known) if known.state in ENDED else None


def _spec_of(state: State, job: Job, found: Found) -> Spec:
    known = found.jobs.get(job.id)
    if known is not None and known.job.spec == job.spec:
        return known.spec
    if job.spec in state.specs.new:
        return state.specs.new[job.spec]
    raise Busy(f"job {job.id} has only just ended", "try again in a moment")


class _Change:
    """What a call changes; worked out once for all jobs that share a spec."""

    def __init__(self, state: State, changes: dict[str, Any]) -> None:
        self._state = state
        self._changes = changes
        self._after: tuple[After, ...] | None = None
        if "after" in changes:
            self._after = dependencies.read(changes["after"], state.last_job)
        self._specs: dict[int, Spec] = {}
        self._numbers: dict[int, int] = {}

    def to(self, job: Job, spec: Spec) -> Edited:
        """Work out what a job is to become, and refuse what could never run."""
        changes = self._changes
        own = {name: changes[name] for name in _OF_THE_JOB if name in changes}
        if job.spec not in self._specs:
            self._specs[job.spec] = self._changed(spec)
        new = self._specs[job.spec]
        queue = queues.find(self._state, own.get("queue", job.queue))
        if "words" in own and own.get("shell") is None:
            own["shell"] = not queue.prefix and is_shell_line(own["words"])
        if "name" in own:
            own["name"] = own["name"].encode("utf-8", "replace").decode()
        _check_fit(self._state, queue, own, job, new)
        return Edited(job, spec, own, new)

    def number(self, spec: Spec) -> int:
        """Give a spec's number; to find it takes a look at all of a long spec."""
        known = self._numbers.get(id(spec))
        if known is None:
            known = self._numbers[id(spec)] = self._state.specs.number(spec)
        return known

    def _changed(self, spec: Spec) -> Spec:
        changes = self._changes
        other = {name: changes[name] for name in _OF_THE_SPEC if name in changes}
        if "request_also" in changes:
            asked = dict(other.get("request", spec.request)) | changes["request_also"]
            left = ((kind, amount) for kind, amount in asked.items() if amount)
            other["request"] = tuple(sorted(left))
        if "env" in other:
            other["env"] = (*spec.env, *other["env"])
        if other.get("worker") is not None:
            other["worker"] = fleet.find(self._state, other["worker"]).id
        if "labels" in other:
            other["labels"] = tuple(sorted(set(other["labels"])))
        if self._after is not None:
            other["after"] = self._after
        return structs.replace(spec, **other) if other else spec


def _check_fit(
    state: State, queue: Queue, own: dict[str, Any], job: Job, spec: Spec
) -> None:
    if abs(own.get("priority", 0)) > LARGEST_PRIORITY:
        raise UsageError(f"priority {own['priority']} is out of range")
    fleet.check_fit(state, queue, spec)
    kinds = known_kinds(state)
    prepared = Prepared(queue.name, queue.prefix, spec.request, spec, kinds)
    check_words(own.get("words", job.words), prepared)
    if not spec.raw:
        texts = [value for _, value in spec.env]
        texts += [text for text in (spec.cwd, spec.output, spec.stderr) if text]
        placeholders.check(texts, spec.request, kinds)


def _check_waits(
    state: State,
    waits: Mapping[int, tuple[After, ...]],
    ends: dict[int, JobState],
    together: Mapping[int, tuple[After, ...]],
) -> None:
    """Check what jobs are to wait for, once for all that wait for the same.

    Those that run again `together` may wait for each other.
    """
    for after in _each_once(waits.values()):
        others = tuple(each for each in after if each.job not in together)
        waiting.check(state, others, ends)
        jobs = {job for job, own in waits.items() if own is after}
        _check_cycle(state, jobs, after, together)


def _check_cycle(
    state: State,
    jobs: Container[int],
    after: tuple[After, ...],
    together: Mapping[int, tuple[After, ...]],
) -> None:
    """Refuse jobs that would, by others, wait for themselves."""
    seen, ahead = set[int](), [after]
    while ahead:
        others = ahead.pop()
        # Members of an array wait for the same: once is enough.
        if id(others) in seen:
            continue
        seen.add(id(others))
        for one in others:
            if one.job in jobs:
                raise Refused(f"job {one.job} would wait for itself", "change --after")
            ahead.append(_waits_for(state, one.job, together))


def _waits_for(
    state: State, number: int, together: Mapping[int, tuple[After, ...]]
) -> tuple[After, ...]:
    if number in together:
        return together[number]
    job = state.jobs.get(number)
    if job is None or job.met or job.state not in _NOT_STARTED:
        return ()
    return state.specs[job.spec].after


def _take_out(state: State, job: Job) -> None:
    if job.state is JobState.QUEUED:
        state.scheduler.remove(job.id)
        state.move_job(job, JobState.WAITING)
    waiting.leave(state, job)


def _apply(state: State, one: Edited, change: _Change) -> None:
    job = one.job
    for name, value in one.own.items():
        setattr(job, name, value)
    arrays.moved(state, job)
    if one.spec.after != one.old.after:
        job.met = False
    number = change.number(one.spec)
    if number != job.spec:
        state.specs.use(number)
        state.specs.release(job.spec)
        job.spec = number
    state.save_job(job)
    state.moved.add(job.id)
