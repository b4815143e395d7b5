"""Calls about very many jobs, worked off a slice at a time.

A verb is a generator: it does one slice, yields, and goes on in the next round, after
other calls and starts. What it yields is the jobs to read from the store for its next
slice. A call of one slice is done in one step. Of several large calls the first is
finished before the next begins, and no job is edited or run again meanwhile.

All that can refuse a call is checked before its first change. The caller is answered
when the last slice is committed. After a crash the slices that were committed hold, and
the same call again does the rest.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress

from grass.broker.core.calls import Done, Found
from grass.broker.core.jobs import eligibility
from grass.broker.core.state import State
from grass.errors import GrassError

SLICE = 250
"""Some 5 ms of work, and twice as much for the disk."""

Slices = Generator[list[int], Found | None, None]
Work = Generator[list[int], Found | None, Done]
Act = Callable[[int], None]


class Bulk:
    """A call of which slices are left to do."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._outcome: Done | GrassError | None = None
        self.wanted: list[int] = []
        """Jobs to read before the next slice."""
        self.found: Found | None = None
        """What was read."""
        self.rests = True
        """Whether it has done its slice of this round."""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return self._outcome is not None

    def result(self) -> Done | GrassError | None:
        """Give what the caller is answered with."""
        return self._outcome

    def cut_off(self, error: GrassError) -> GrassError:
        """Say that slices before this error may have been committed."""
        return type(error)(
            f"not all jobs were reached: {error.message}",
            "do it again: what was done already is passed over",
        )

    def go_on(self) -> None:
        """Do one more slice; a refusal is the outcome."""
        found, self.found, self.wanted = self.found, None, []
        try:
            self.wanted = self._work.send(found)
        except StopIteration as end:
            self._outcome = end.value
        except GrassError as error:
            self._outcome = error


def begin_each(state: State, jobs: Sequence[int], work: Work) -> Done | Bulk:
    """Do something to jobs one by one; a few are done at once in any case."""
    if len(jobs) > SLICE:
        return begin(state, work)
    bulk = Bulk(work)
    bulk.go_on()
    outcome = bulk.result()
    assert isinstance(outcome, Done), "a slice of such a verb is all of it"
    return outcome


def begin(state: State, work: Work, found: Found | None = None) -> Done | Bulk:
    """Do a small call at once; let a large one, or any behind one, go on later.

    `found` is what was read for the first slice.
    """
    bulk = Bulk(work)
    if not state.bulk.verbs:
        bulk.go_on()
        if bulk.wanted and found is not None:
            bulk.found = found
            bulk.go_on()
    outcome = bulk.result()
    if isinstance(outcome, GrassError):
        raise outcome
    if outcome is None:
        state.bulk.verbs.append(bulk)
    return bulk if outcome is None else outcome


def advance(state: State) -> None:
    """Do one more slice of the first large call."""
    if not state.bulk.verbs:
        return
    first = state.bulk.verbs[0]
    if first.rests:
        first.rests = False
    elif not first.wanted or first.found is not None:
        first.go_on()
        if first.complete:
            state.bulk.verbs.popleft()


def parts(jobs: Sequence[int]) -> list[Sequence[int]]:
    """Cut jobs into slices."""
    return [jobs[begin : begin + SLICE] for begin in range(0, len(jobs), SLICE)]


def work_off(jobs: Sequence[int], act: Act) -> Slices:
    """Do something to each job."""
    for turn, part in enumerate(parts(jobs)):
        if turn:
            yield []
        for number in part:
            act(number)


def work_off_before_start(state: State, jobs: Sequence[int], act: Act) -> Slices:
    """Do something to each job, and to none of them after it has started meanwhile.

    A job whose turn to start comes first is acted on then.
    """
    if len(jobs) <= SLICE:
        yield from work_off(jobs, act)
        return
    left = set(jobs)

    def act_once(number: int) -> None:
        if number in left:
            left.discard(number)
            act(number)

    state.bulk.before_start.append((left, act_once))
    try:
        yield from work_off(jobs, act_once)
    finally:
        state.bulk.before_start.remove((left, act_once))


def act_before_start(state: State, number: int) -> bool:
    """Do what a call under way wants of a job that has just been placed.

    Tells whether there was such a call; the job has stood in line again then.
    """
    for left, act in state.bulk.before_start:
        if number in left:
            state.scheduler.release(number)
            eligibility.stand_in_line(state, state.jobs[number])
            # A refusal, as of a queue that was deleted meanwhile, leaves it in line.
            with suppress(GrassError):
                act(number)
            return True
    return False
