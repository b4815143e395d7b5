"""The work of an enqueue: making jobs, slice by slice.

A call may bring a hundred thousand jobs, all or none. Made and written at once they
would delay every start for a second; so they are made, written and queued in slices,
between which other calls and starts go on (`bulk_calls`). Until the last job is made
and committed the store keeps the range of ids marked as arriving: no query returns
these jobs, and after a crash they do not exist. A small call
is one slice and arrives in one step.
"""

from collections import Counter
from typing import NamedTuple

from grass.broker.core.calls import Enqueue, Enqueued, NewJob
from grass.broker.core.jobs import array_limits, dependency_graph, eligibility
from grass.broker.core.jobs.bulk_calls import BulkCall, Work
from grass.broker.core.state import State
from grass.errors import GrassError
from grass.model.jobs.commands import is_shell_line
from grass.model.jobs.default_names import LONGEST, default_name
from grass.model.jobs.dependencies import After
from grass.model.jobs.job import DEFAULT_PROJECT, Common, Job, alike, new_job
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import Spec
from grass.store.changes import AnsweredCall

SLICE = 1000
"""Some 10 ms of work."""


class Prepared(NamedTuple):
    """A spec that was checked against its queue, once for all jobs that share it."""

    queue: str
    prefix: tuple[str, ...]
    spec: Spec
    known_kinds: frozenset[str]
    unmet: tuple[After, JobState] | None = None
    """A dependency that can never be met, and how that job ended."""


class Arrival(BulkCall):
    """A checked enqueue whose jobs are being made: all of them, or none."""

    def __init__(
        self, state: State, call: Enqueue, prepared: dict[int, Prepared], hint: str
    ) -> None:
        super().__init__(_work(state, self))
        self.call = call
        self.prepared = prepared
        jobs_of = Counter(id(new.patch) for new in call.jobs)
        self.specs = {
            key: state.specs.acquire(one.spec, jobs_of[key])
            for key, one in prepared.items()
        }
        self.first = state.last_job + 1
        self.last = state.last_job + len(call.jobs)
        self.enqueued = Enqueued(self.first, self.last, hint)
        self.jobs: list[Job] = []

    def error_for(self, error: GrassError) -> GrassError:
        """Return the error as it is: none of the jobs exists."""
        return error


def begin(
    state: State,
    call: Enqueue,
    prepared: dict[int, Prepared],
    ends: dict[int, JobState],
    hint: str,
) -> Arrival:
    """Assign the ids of a checked call and make its first slice."""
    arrival = Arrival(state, call, prepared, hint)
    for one in prepared.values():
        dependency_graph.remember(state, one.spec.after, ends, -arrival.first)
    state.last_job = arrival.last
    state.batch.changes.meta["last_job"] = str(arrival.last)
    arrival.advance()
    return arrival


def _work(state: State, arrival: Arrival) -> Work:
    """Make all jobs, then queue them; the reply is certain once all are made."""
    wanted = len(arrival.call.jobs)
    _make_slice(state, arrival)
    if len(arrival.jobs) < wanted:
        state.batch.changes.arrivals.append((arrival.first, arrival.last))
        while len(arrival.jobs) < wanted:
            yield []
            _make_slice(state, arrival)
        state.batch.changes.removed_arrivals.append(arrival.first)
    _arrive(state, arrival)
    for begin in range(0, wanted, SLICE):
        if begin:
            yield arrival.enqueued
        _enter_slice(state, arrival.jobs[begin : begin + SLICE])
    for one in arrival.prepared.values():
        dependency_graph.forget(state, one.spec.after, -arrival.first)
    return arrival.enqueued


def _make_slice(state: State, arrival: Arrival) -> None:
    begin = len(arrival.jobs)
    for offset, new in enumerate(arrival.call.jobs[begin : begin + SLICE], begin):
        job = _job(state, arrival, arrival.first + offset, new)
        arrival.jobs.append(job)
        state.batch.changes.jobs[job.id] = job
    state.batch.urgent = True


def _arrive(state: State, arrival: Arrival) -> None:
    """Add the jobs to memory: with the next commit they exist, and are answered."""
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


def _enter_slice(state: State, jobs: list[Job]) -> None:
    """Enter jobs, except those that were cancelled meanwhile."""
    waits, known = state.scheduler.waits, state.jobs
    eligibility.enter_all(
        state, [job for job in jobs if job.id in known and not waits(job.id)]
    )


def _job(state: State, arrival: Arrival, number: int, new: NewJob) -> Job:
    spec = arrival.prepared[id(new.patch)].spec
    first = eligibility.first_state(state, spec, hold=bool(new.patch.hold))
    if arrival.jobs and _alike(new, arrival.call.jobs[len(arrival.jobs) - 1]):
        common = arrival.jobs[-1].common
    else:
        common = _common(state, arrival, new)
    return new_job(number, common, first, new.index, new.params, new.arguments)


def is_for_a_shell(new: NewJob, known: Prepared) -> bool:
    """Return whether a job's command is a shell line."""
    if new.shell is not None:
        return new.shell
    return not known.prefix and is_shell_line(new.words)


def _alike(one: NewJob, other: NewJob) -> bool:
    return one.patch is other.patch and (
        (one.words, one.shell, one.name) == (other.words, other.shell, other.name)
    )


def name_of(new: NewJob, known: Prepared) -> str:
    """Return the name that a job shares with those that are given the same."""
    task = known.spec.task
    given = new.name or new.patch.name or (task and task.name[:LONGEST])
    name = given or default_name((*known.prefix, *new.words))
    return name.encode("utf-8", "replace").decode()


def _common(state: State, arrival: Arrival, new: NewJob) -> Common:
    patch, known = new.patch, arrival.prepared[id(new.patch)]
    shell = is_for_a_shell(new, known)
    return Common(
        arrival.specs[id(patch)],
        new.words,
        shell,
        name_of(new, known),
        patch.project or DEFAULT_PROJECT,
        arrival.call.actor,
        known.queue,
        patch.priority or 0,
        state.now_us,
        None if new.index is None else arrival.first,
    )
