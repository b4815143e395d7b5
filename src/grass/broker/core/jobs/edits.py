"""Changing jobs: those that have not started here, ended ones for `reruns`.

A change gives a job another spec; jobs that share the old one keep it. A call changes
all jobs that it names, or none: very many jobs are first all checked and then changed,
both in slices. One that ends between its check and its change is left alone.

There is one order of starting: priority, then arrival. A job goes first by a priority
above those of all others that wait in its queue at the time of the call, and right
before another job by one between that job's and those ahead of it (`moves`).
"""

from collections.abc import Generator, Sequence
from typing import NamedTuple, TypedDict, cast

from msgspec import UNSET
from msgspec.structs import replace

from grass.broker.core.attempts import avoided
from grass.broker.core.calls import Done, Edit, Found
from grass.broker.core.jobs import (
    array_limits,
    bulk_calls,
    dependency_edits,
    dependency_graph,
    eligibility,
    moves,
    queues,
)
from grass.broker.core.jobs.bulk_calls import BulkCall, Work
from grass.broker.core.jobs.bulk_enqueue import Prepared
from grass.broker.core.jobs.enqueue import (
    check_params,
    check_positions,
    check_words,
    checked,
    ends_of,
    with_worker_id,
)
from grass.broker.core.state import State
from grass.errors import Refused
from grass.model.jobs.commands import LARGEST_PRIORITY, is_shell_line
from grass.model.jobs.dependencies import After
from grass.model.jobs.job import Common, Job
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import JobPatch, Spec, changed, given
from grass.model.queue import Queue


class OwnFields(TypedDict, total=False):
    """What a patch changes of a job besides its spec."""

    words: tuple[str, ...]
    shell: bool | None
    name: str
    project: str
    queue: str
    priority: int


class Edited(NamedTuple):
    """A job, what it was, and what it is to become."""

    job: Job
    old: Spec
    own: OwnFields
    spec: Spec

    @property
    def open_after(self) -> tuple[After, ...]:
        """What it still has to wait for: dependencies that were met count no more."""
        was_met = self.job.met and self.spec.after == self.old.after
        return () if was_met else self.spec.after


class Change:
    """What a call changes; computed once for all jobs that share a spec."""

    def __init__(self, state: State, patch: JobPatch) -> None:
        self._state = state
        self._patch = with_worker_id(state, patch)
        self._own = _of_the_job(patch)
        self.priorities: dict[int, int] = {}
        """Priorities that are not the same for all jobs of the call."""
        self._prepared: dict[tuple[int, str], Prepared] = {}
        self._numbers: dict[int, int] = {}
        """By the identity of a spec its number, which the call holds to its end."""
        self._last: Common | None = None

    def to(self, job: Job, spec: Spec) -> Edited:
        """Return what a job is to become, or refuse what could never run."""
        own = self._own.copy()
        if job.id in self.priorities:
            own["priority"] = self.priorities[job.id]
        queue = queues.find(self._state, own.get("queue", job.queue))
        if "words" in own and own.get("shell") is None:
            own["shell"] = not queue.prefix and is_shell_line(own["words"])
        prepared = self._checked(job.spec, spec, queue)
        if spec.guest is not None and prepared.spec.worker != spec.worker:
            raise Refused(f"job {job.id} is a guest, and stays where its process is")
        words = own.get("words", job.words)
        check_words(words, prepared)
        if "words" in own or "name" in own:
            texts = (*words, own.get("name") or "")
            check_positions(texts, prepared.spec, job.params)
        if job.params:
            check_params(job.params, words, prepared, bool(own.get("shell", job.shell)))
        return Edited(job, spec, own, prepared.spec)

    def _checked(self, number: int, spec: Spec, queue: Queue) -> Prepared:
        known = self._prepared.get((number, queue.name))
        if known is None:
            known = checked(self._state, queue, changed(spec, self._patch))
            self._prepared[number, queue.name] = known
        return known

    def apply(self, one: Edited) -> None:
        """Make a job what it is to become."""
        state, job = self._state, one.job
        number = self._number(one.spec)
        if number != job.spec:
            state.specs.use(number)
            self._release(job.spec)
        state.totals.unfinished[job.queue] -= 1
        avoided.leave(state, job)
        job.common = self._common(job.common, one.own, number)
        state.totals.unfinished[job.queue] += 1
        array_limits.moved(state, job)
        if one.spec.after != one.old.after:
            job.met = False
        state.save_job(job)
        state.batch.moved.add(job.id)

    def _common(self, common: Common, own: OwnFields, spec: int) -> Common:
        """Return one `Common` for jobs that shared one before."""
        new = replace(common, spec=spec, **own)
        if new != self._last:
            self._last = new
        return self._last

    def _number(self, spec: Spec) -> int:
        """Return a spec's number, looked up once: that hashes all of a spec.

        The call uses the spec from then on: jobs of one slice may end before the next.
        """
        number = self._numbers.get(id(spec))
        if number is None:
            number = self._numbers[id(spec)] = self._state.specs.acquire(spec)
        return number

    def close(self) -> None:
        """Release the specs that the call holds."""
        for number in self._numbers.values():
            self._release(number)
        self._numbers.clear()

    def _release(self, number: int) -> None:
        specs = self._state.specs
        specs.release(number)
        if number not in specs:
            self._state.batch.changes.unused_specs.append(number)


def edit(state: State, call: Edit) -> Done | BulkCall:
    """Change jobs that have not started: all of them, or none."""
    return bulk_calls.begin(state, _edit(state, call), call.found)


def _edit(state: State, call: Edit) -> Work:
    yield from dependency_edits.catch_up(state)
    found = (yield bulk_calls.Named(call.named)) if call.named else None
    ends, waits = ends_of(found), dict[int, tuple[After, ...]]()
    change, kept = Change(state, call.patch), dependency_edits.Remembered(state)
    numbers = list(dict.fromkeys(call.jobs))

    def check(number: int) -> None:
        job = _not_started(state, number)
        waits[number] = change.to(job, state.specs[job.spec]).open_after
        kept.remember(waits[number], ends)

    try:
        yield from bulk_calls.each(numbers, check)
        if call.patch.after is not UNSET:
            dependency_edits.check(state, call.actor, waits, ends, {})
        if call.first:
            change.priorities = yield from _first(state, numbers, call.patch)
        elif call.before is not None:
            change.priorities = yield from moves.before(state, numbers, call.before)
        done, others = Done(), [one for one in change.priorities if one not in waits]
        act = _act(state, call, change, done)
        # Those that make room first: nobody is overtaken meanwhile.
        yield from bulk_calls.each_before_start(state, [*others, *numbers], act)
    finally:
        change.close()
        kept.forget()
    done.jobs = [one for one in done.jobs if one in waits]
    left = len(numbers) - len(done.jobs)
    if left:
        done.warnings.append(f"{left} jobs have ended meanwhile and were left alone")
    return done


def _act(state: State, call: Edit, change: Change, done: Done) -> bulk_calls.Act:
    moves_jobs = call.first or call.before is not None
    names = {*given(call.patch), "priority"} if moves_jobs else given(call.patch)

    def act(number: int) -> None:
        job = state.jobs.get(number)
        if job is None or job.state is JobState.RUNNING:
            return
        one = change.to(job, state.specs[job.spec])
        _take_out(state, job)
        change.apply(one)
        eligibility.enter(state, job)
        state.note_by(call.actor, "edited", number, changed=sorted(names))
        done.jobs.append(number)

    return act


def _not_started(state: State, number: int) -> Job:
    job = state.jobs.get(number)
    if job is None:
        raise Refused(f"job {number} has ended", f"`grass rerun {number} --edit`")
    if job.state is JobState.RUNNING:
        raise Refused(f"job {number} runs already", f"`grass cancel {number}` first")
    return job


Highest = dict[str, tuple[int, int]]
"""By queue: the highest priority, and a job that has it."""


def _first(
    state: State, numbers: Sequence[int], patch: JobPatch
) -> Generator[list[int], Found | None, dict[int, int]]:
    """Return the priorities by which jobs go before all others of their queues."""
    highest = yield from _highest_of_others(state, set(numbers))
    named: dict[str, list[Job]] = {}
    for number in numbers:
        job = state.jobs.get(number)
        if job is not None:
            queue = job.queue if patch.queue is UNSET else patch.queue
            named.setdefault(queue, []).append(job)
    raised: dict[int, int] = {}
    for queue, jobs in named.items():
        if queue in highest:
            raised |= _above(*highest[queue], jobs)
    return raised


def _highest_of_others(
    state: State, named: set[int]
) -> Generator[list[int], Found | None, Highest]:
    """Return the highest priority of other jobs that have not started, by queue."""
    highest = Highest()

    def look(job: Job) -> None:
        common = job.common
        known = highest.get(common.queue)
        if known is None or common.priority > known[0]:
            highest[common.queue] = (common.priority, job.id)

    yield from bulk_calls.look_at_waiting(state, named, look)
    return highest


def _above(highest: int, holder: int, jobs: list[Job]) -> dict[int, int]:
    """Return priorities above the highest; the jobs keep their order."""
    steps = sorted({job.priority for job in jobs})
    if highest + len(steps) > LARGEST_PRIORITY:
        raise Refused(
            f"no priority is left above the {highest} of job {holder}",
            f"`grass edit {holder} --priority 0` first",
        )
    above = {
        step: max(step, highest + place) for place, step in enumerate(steps, start=1)
    }
    return {job.id: above[job.priority] for job in jobs}


def _take_out(state: State, job: Job) -> None:
    if job.state is JobState.QUEUED:
        state.scheduler.remove(job.id)
        state.move_job(job, JobState.WAITING)
    dependency_graph.leave(state, job)


def _of_the_job(patch: JobPatch) -> OwnFields:
    """Return what a patch changes of a job besides its spec."""
    fields = given(patch)
    names = [name for name in Common.__struct_fields__ if name in fields]
    own = cast("OwnFields", {name: fields[name] for name in names})
    if "name" in own:
        own["name"] = own["name"].encode("utf-8", "replace").decode()
    return own
