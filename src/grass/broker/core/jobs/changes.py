"""A change of jobs: what each is to become, checked before any is changed.

A change gives a job another spec; who shares the old one keeps it. Used by `edits` for
jobs that have not started and by `reruns` for those that have ended.
"""

from typing import Any, NamedTuple

from msgspec import structs

from grass.broker.core.jobs import array_limits, queues
from grass.broker.core.jobs.bulk_enqueue import Prepared
from grass.broker.core.jobs.enqueue import check_words, checked
from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.model import dependencies
from grass.model.commands import check_priority, is_shell_line
from grass.model.dependencies import After
from grass.model.job import Common, Job
from grass.model.queue import Queue
from grass.model.spec import Spec

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


class Edited(NamedTuple):
    """A job, what it was, and what it is to become."""

    job: Job
    old: Spec
    own: dict[str, Any]
    spec: Spec

    @property
    def open_after(self) -> tuple[After, ...]:
        """What it still has to wait for: dependencies that were met count no more."""
        was_met = self.job.met and self.spec.after == self.old.after
        return () if was_met else self.spec.after


class Change:
    """What a call changes; worked out once for all jobs that share a spec."""

    def __init__(self, state: State, changes: dict[str, Any]) -> None:
        self._state = state
        self._changes = changes
        check_priority(changes.get("priority", 0))
        self._after: tuple[After, ...] | None = None
        if "after" in changes:
            self._after = dependencies.read(changes["after"], state.last_job)
        self._prepared: dict[tuple[int, str], Prepared] = {}
        self._numbers: dict[int, int] = {}
        self._last: Common | None = None

    def to(self, job: Job, spec: Spec) -> Edited:
        """Work out what a job is to become, and refuse what could never run."""
        changes = self._changes
        own = {name: changes[name] for name in _OF_THE_JOB if name in changes}
        queue = queues.find(self._state, own.get("queue", job.queue))
        if "words" in own and own.get("shell") is None:
            own["shell"] = not queue.prefix and is_shell_line(own["words"])
        if "name" in own:
            own["name"] = own["name"].encode("utf-8", "replace").decode()
        prepared = self._checked(job.spec, spec, queue)
        check_words(own.get("words", job.words), prepared)
        return Edited(job, spec, own, prepared.spec)

    def _checked(self, number: int, spec: Spec, queue: Queue) -> Prepared:
        known = self._prepared.get((number, queue.name))
        if known is None:
            known = checked(self._state, queue, self._changed(spec))
            self._prepared[number, queue.name] = known
        return known

    def apply(self, one: Edited) -> None:
        """Make a job what it is to become."""
        state, job = self._state, one.job
        number = self._number(one.spec)
        if number != job.spec:
            state.specs.use(number)
            state.specs.release(job.spec)
            if job.spec not in state.specs:
                state.batch.changes.unused_specs.append(job.spec)
        state.totals.unfinished[job.queue] -= 1
        job.common = self._common(job.common, one.own, number)
        state.totals.unfinished[job.queue] += 1
        array_limits.moved(state, job)
        if one.spec.after != one.old.after:
            job.met = False
        state.save_job(job)
        state.batch.moved.add(job.id)

    def _common(self, common: Common, own: dict[str, Any], spec: int) -> Common:
        """Give what jobs have alike that had this alike before."""
        new = structs.replace(common, spec=spec, **own)
        if new != self._last:
            self._last = new
        return self._last

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
            other["worker"] = registry.find(self._state, other["worker"]).id
        if "labels" in other:
            other["labels"] = tuple(sorted(set(other["labels"])))
        if self._after is not None:
            other["after"] = self._after
        return structs.replace(spec, **other) if other else spec

    def _number(self, spec: Spec) -> int:
        """Give a spec's number; to find it takes a look at all of a long spec."""
        known = self._numbers.get(id(spec))
        if known is None:
            known = self._numbers[id(spec)] = self._state.specs.number(spec)
        return known
