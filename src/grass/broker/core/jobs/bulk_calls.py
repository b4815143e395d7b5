"""Calls about very many jobs, done one slice at a time.

The work of a call is a generator: it does one slice, yields, and continues in the next
round, after other calls and starts. It yields the jobs to read from the store for its
next slice, or its reply, where that is certain before all is done. A call of one slice
is done in one step.

Enqueues and verbs each have a lane, of which the first call advances; the work of an
enqueue is in `bulk_enqueue`. All that can refuse a verb is checked before its first
change, and no job is edited or run again while another verb does so. The caller is
answered when the reply is committed. After a crash the slices of a verb that were
committed hold, and the same call again does the rest.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from grass.broker.core.calls import Done, Enqueued, Found
from grass.broker.core.jobs import eligibility
from grass.broker.core.state import State
from grass.errors import GrassError
from grass.model.id_runs import Runs
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState

SLICE = 250
"""Some 5 ms of work, and twice as much for the disk."""
LOOKED_AT = 10_000
"""How many jobs are looked at in one slice, where nothing is done to them."""


class Named(NamedTuple):
    """Jobs that others are to wait for, whose states a slice needs."""

    runs: Runs


Slices = Generator[list[int], Found | None, None]
Work = Generator[list[int] | Named | Enqueued, Found | None, Done | Enqueued]
Act = Callable[[int], None]


class BulkCall:
    """A call of which slices are left to do."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.reply: Done | Enqueued | GrassError | None = None
        """What the caller is answered with once this is committed."""
        self.finished = False
        """Whether nothing is left to do."""
        self.is_new = True
        """Whether it has done its slice of this round."""
        self.wanted: list[int] = []
        """Jobs to read before the next slice."""
        self.named: Runs = ()
        """Jobs whose states to read before the next slice."""
        self.found: Found | None = None
        """What was read."""

    @property
    def is_unread(self) -> bool:
        """Return whether something is to be read before the next slice."""
        return bool(self.wanted or self.named) and self.found is None

    def error_for(self, error: GrassError) -> GrassError:
        """Return an error that says that some slices may have been committed."""
        return type(error)(
            f"not all jobs were reached: {error.message}",
            "do it again: what was done already is passed over",
        )

    def advance(self) -> None:
        """Do one more slice; a refusal is the reply."""
        found, self.found, self.wanted, self.named = self.found, None, [], ()
        try:
            step = self._work.send(found)
        except StopIteration as end:
            self.reply, self.finished = end.value, True
        except GrassError as error:
            self.reply, self.finished = error, True
        else:
            if isinstance(step, list):
                self.wanted = step
            elif isinstance(step, Named):
                self.named = step.runs
            else:
                self.reply = step


AnyBulkCall = TypeVar("AnyBulkCall", bound=BulkCall)


def begin_each(state: State, jobs: Sequence[int], work: Work) -> Done | BulkCall:
    """Do something to jobs one by one; a few are done at once in any case."""
    if len(jobs) > SLICE:
        return begin(state, work)
    bulk = BulkCall(work)
    bulk.advance()
    assert isinstance(bulk.reply, Done), "a slice of such a verb is all of it"
    return bulk.reply


def begin(state: State, work: Work, found: Found | None = None) -> Done | BulkCall:
    """Do a small call at once; continue a large one, or any behind one, later.

    `found` is what was read for the first slice.
    """
    bulk = BulkCall(work)
    if not state.bulk.verbs:
        bulk.advance()
        if bulk.is_unread and found is not None:
            bulk.found = found
            bulk.advance()
    if isinstance(bulk.reply, GrassError):
        raise bulk.reply
    if isinstance(bulk.reply, Done):
        return bulk.reply
    state.bulk.verbs.append(bulk)
    return bulk


def advance(lane: deque[AnyBulkCall]) -> None:
    """Do one more slice of the first call of a lane."""
    if not lane:
        return
    first = lane[0]
    if first.is_new:
        first.is_new = False
    elif not first.is_unread:
        first.advance()
        if first.finished:
            lane.popleft()


def parts(jobs: Sequence[int]) -> list[Sequence[int]]:
    """Cut jobs into slices."""
    return [jobs[begin : begin + SLICE] for begin in range(0, len(jobs), SLICE)]


def each(jobs: Sequence[int], act: Act) -> Slices:
    """Do something to each job."""
    for index, part in enumerate(parts(jobs)):
        if index:
            yield []
        for number in part:
            act(number)


def look_at_waiting(
    state: State, named: set[int], look: Callable[[Job], None]
) -> Slices:
    """Look at each job that has not started, but not at those that a call names."""
    numbers = list(state.jobs)
    for begin in range(0, len(numbers), LOOKED_AT):
        if begin:
            yield []
        for number in numbers[begin : begin + LOOKED_AT]:
            job = state.jobs.get(number)
            if job is None or job.state is JobState.RUNNING or number in named:
                continue
            look(job)


def each_before_start(state: State, jobs: Sequence[int], act: Act) -> Slices:
    """Do something to each job, and to none of them after it has started meanwhile.

    A job whose turn to start comes first is acted on then.
    """
    if len(jobs) <= SLICE:
        yield from each(jobs, act)
        return
    left = set(jobs)

    def act_once(number: int) -> None:
        if number in left:
            left.discard(number)
            act(number)

    state.bulk.before_start.append((left, act_once))
    try:
        yield from each(jobs, act_once)
    finally:
        state.bulk.before_start.remove((left, act_once))


def act_before_start(state: State, number: int) -> bool:
    """Do what a call under way wants of a job that has just been placed.

    Tells whether there was such a call; the job was queued again before.
    """
    for left, act in state.bulk.before_start:
        if number in left:
            state.scheduler.release(number)
            eligibility.queue_job(state, state.jobs[number])
            # A refusal, as of a queue that was deleted meanwhile, leaves it queued.
            with suppress(GrassError):
                act(number)
            return True
    return False
