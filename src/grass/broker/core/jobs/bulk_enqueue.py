"""Jobs on their way in, slice by slice.

A call may bring a hundred thousand jobs, all or none. Made and written at once they
would hold up every start for a second; so they are made, written and handed to the
scheduler in slices, between which other calls and starts go on. Until the last slice is
committed the store keeps the range of ids marked as arriving: nobody sees these jobs,
and after a crash they are gone as if the call had never come. A small call is one slice
and arrives in one step.
"""

from collections import Counter
from typing import NamedTuple

import msgspec

from grass.broker.core.calls import Enqueue, Enqueued, NewJob
from grass.broker.core.jobs import array_limits, dependency_graph, eligibility
from grass.broker.core.state import State
from grass.errors import GrassError
from grass.model.commands import default_name, is_shell_line
from grass.model.job import DEFAULT_PROJECT, Common, Job, alike
from grass.model.lifecycle import JobState
from grass.model.spec import Spec
from grass.store.changes import AnsweredCall

SLICE = 1000
"""Some 10 ms of work."""


class Prepared(NamedTuple):
    """A spec that was checked against its queue, once for all jobs that share it."""

    queue: str
    prefix: tuple[str, ...]
    spec: Spec
    known_kinds: frozenset[str]


class Arrival(msgspec.Struct):
    """A checked call whose jobs are being made."""

    call: Enqueue
    prepared: dict[int, Prepared]
    specs: dict[int, int]
    first: int
    jobs: list[Job] = []
    handed: int = 0
    """How many the scheduler knows."""

    @property
    def last(self) -> int:
        """The id of its last job."""
        return self.first + len(self.call.jobs) - 1

    @property
    def complete(self) -> bool:
        """Whether every job has been made."""
        return len(self.jobs) == len(self.call.jobs)

    def cut_off(self, error: GrassError) -> GrassError:
        """Give what the caller is told: none of its jobs exists."""
        return error

    def result(self) -> Enqueued:
        """Give the ids, which follow on each other."""
        return Enqueued(self.first, self.last)


def begin(
    state: State,
    call: Enqueue,
    prepared: dict[int, Prepared],
    ends: dict[int, JobState],
) -> Arrival:
    """Give a checked call its ids and make its first slice."""
    specs = {key: state.specs.number(one.spec) for key, one in prepared.items()}
    arrival = Arrival(call, prepared, specs, state.last_job + 1)
    for new in call.jobs:
        state.specs.use(specs[id(new.patch)])
    for one in prepared.values():
        dependency_graph.remember(state, one.spec.after, ends, -arrival.first)
    state.last_job = arrival.last
    state.batch.changes.meta["last_job"] = str(arrival.last)
    _make_slice(state, arrival)
    if arrival.complete:
        _arrive(state, arrival)
    else:
        state.batch.changes.arrivals.append((arrival.first, arrival.last))
        state.batch.urgent = True
    return arrival


def advance(state: State, arrival: Arrival) -> None:
    """Make or hand over one more slice."""
    if arrival.complete:
        _hand_over(state, arrival)
        return
    _make_slice(state, arrival)
    if arrival.complete:
        state.batch.changes.removed_arrivals.append(arrival.first)
        _arrive(state, arrival)


def done(arrival: Arrival) -> bool:
    """Tell whether nothing is left to do."""
    return arrival.handed == len(arrival.call.jobs)


def _make_slice(state: State, arrival: Arrival) -> None:
    begin = len(arrival.jobs)
    for offset, new in enumerate(arrival.call.jobs[begin : begin + SLICE], begin):
        job = _job(state, arrival, arrival.first + offset, new)
        arrival.jobs.append(job)
        state.batch.changes.jobs[job.id] = job
    state.batch.urgent = True


def _arrive(state: State, arrival: Arrival) -> None:
    """Let the jobs exist: from the next commit on the call is answered."""
    call, first, last = arrival.call, arrival.first, arrival.last
    state.jobs.update((job.id, job) for job in arrival.jobs)
    for begun, count in Counter(job.state for job in arrival.jobs).items():
        state.totals.states[begun] += count
    for common, count in alike(arrival.jobs):
        state.totals.unfinished[common.queue] += count
        array_limits.join(state, common, count)
    state.note_by(call.actor, "enqueued", first, last=last)
    if call.key is not None:
        answered = AnsweredCall(call.key, call.actor, first, last, state.now_us)
        state.answered.add(answered, state.batch.changes)
    _hand_over(state, arrival)


def _hand_over(state: State, arrival: Arrival) -> None:
    """Let a slice wait or stand in line; what was cancelled meanwhile stays out."""
    begin, end = arrival.handed, arrival.handed + SLICE
    arrival.handed = min(end, len(arrival.jobs))
    waits, known = state.scheduler.waits, state.jobs
    slice_ = arrival.jobs[begin:end]
    eligibility.enter_all(
        state, [job for job in slice_ if job.id in known and not waits(job.id)]
    )
    if done(arrival):
        for one in arrival.prepared.values():
            named = [after.job for after in one.spec.after]
            dependency_graph.forget(state, named, -arrival.first)


def _job(state: State, arrival: Arrival, number: int, new: NewJob) -> Job:
    spec = arrival.prepared[id(new.patch)].spec
    first = eligibility.first_state(state, spec, hold=bool(new.patch.hold))
    if arrival.jobs and _alike(new, arrival.call.jobs[len(arrival.jobs) - 1]):
        return Job(number, arrival.jobs[-1].common, first, new.index)
    return Job(number, _common(state, arrival, new), first, new.index)


def _alike(one: NewJob, other: NewJob) -> bool:
    return one.patch is other.patch and (
        (one.words, one.shell, one.name) == (other.words, other.shell, other.name)
    )


def _common(state: State, arrival: Arrival, new: NewJob) -> Common:
    patch, known = new.patch, arrival.prepared[id(new.patch)]
    shell = new.shell
    if shell is None:
        shell = not known.prefix and is_shell_line(new.words)
    name = new.name or patch.name or default_name(known.prefix or new.words)
    return Common(
        arrival.specs[id(patch)],
        new.words,
        shell,
        name.encode("utf-8", "replace").decode(),
        patch.project or DEFAULT_PROJECT,
        arrival.call.actor,
        known.queue,
        patch.priority or 0,
        state.now_us,
        None if new.index is None else arrival.first,
    )
