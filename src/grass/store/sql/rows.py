"""Values as rows, and back: columns for what statements look at, a body for the rest.

Queues, views, workers, tokens, pools, pilots and profiles are a key and a body. Of an
attempt and a job a column is what a statement filters, joins or sums. What jobs have in
common stays in columns as well: in bodies it would make a million members of an array
half as large again.

Text that may hold bytes which are not UTF-8 (commands, environments, directories) is
stored as JSON with such bytes escaped, because databases take only real text.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NoReturn

from msgspec.structs import replace

from grass.model.access import Token
from grass.model.jobs.job import (
    Attempt,
    Common,
    Job,
    JobWithParams,
    TaskJob,
    filled_name,
)
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.spec import Spec
from grass.model.pools import Pilot, Pool
from grass.model.queue import Queue, View
from grass.model.usage.held_sums import HeldSum, SumKey
from grass.model.usage.profiles import Profile
from grass.model.worker import Worker
from grass.store.bodies import CorruptRow, Rest, from_json, json_text
from grass.store.changes import Removal
from grass.store.sql.dialect import Row


class _StoredJob(JobWithParams, gc=False):
    """All that the body of any job may have."""

    arguments: bytes = b""
    arguments_blob: str = ""


_JOB_STATES = {state.value: state for state in JobState}
_ATTEMPT_STATES = {state.value: state for state in AttemptState}
_OF_A_JOB = ("id", "common", "state", "index", "finished_at", "attempts")
_JOB = Rest(Job, _OF_A_JOB)
_WITH_PARAMS = Rest(JobWithParams, _OF_A_JOB, "Job")
_TASK = Rest(TaskJob, _OF_A_JOB, "Job")
_STORED = Rest(_StoredJob, _OF_A_JOB, "Job")
_WRITTEN = {Job: _JOB, JobWithParams: _WITH_PARAMS, TaskJob: _TASK}
_ATTEMPT = Rest(Attempt, ("job", "number", "state", "output_bytes", "ran_s"))
_WORKER = Rest(Worker, ("connected", "skew_s", "unable", "shrinks"))
"""Without what is known only while the worker is connected."""
_END_OF_COMMON = 1 + len(Common.__struct_fields__)
"""A job's columns are its id, then what jobs have in common, then its own."""


def job_row(job: Job) -> Row:
    """Give a job as `save_job` takes it."""
    return (
        job.id,
        *common_row(job.common),
        job.state.value,
        job.index,
        job.finished_at,
        job.attempts,
        _WRITTEN[type(job)].text(job),
    )


@lru_cache(maxsize=4)
def common_row(common: Common) -> Row:
    """Give what jobs have in common as the columns after their id have it."""
    return (
        common.spec,
        json_text(common.words),
        common.shell,
        common.name,
        common.project,
        common.owner,
        common.queue,
        common.priority,
        common.created_at,
        common.array,
    )


def jobs_from(rows: Iterable[Row]) -> Iterator[Job]:
    """Read jobs as `save_job` wrote them.

    Jobs that follow on each other and have the same in common share it.
    """
    common, alike = None, ()
    for row in rows:
        if common is None or row[1:_END_OF_COMMON] != alike:
            alike = row[1:_END_OF_COMMON]
            common = _common_from(alike)
        state, index, finished_at, attempts, body = row[_END_OF_COMMON:]
        kind, rest = (Job, {}) if body is None else _kind_of(body, row[0])
        known = _JOB_STATES.get(state) or _unknown(f"job {row[0]}", state)
        job = kind(row[0], common, known, index, **rest)
        job.finished_at, job.attempts = finished_at, attempts
        yield job


def _kind_of(body: str, id: int) -> tuple[type[Job], dict[str, Any]]:
    """Return the class of a job and the fields of its body."""
    rest = _STORED.fields(body, id)
    params = rest.pop("params")
    data, blob = rest.pop("arguments"), rest.pop("arguments_blob")
    if data or blob:
        return TaskJob, rest | {"arguments": data, "arguments_blob": blob}
    return (JobWithParams, rest | {"params": params}) if params else (Job, rest)


def filled_name_of(name: str, id: int, index: int | None, body: str | None) -> str:
    """Return a job's own name, from its columns."""
    rest = {} if body is None else _WITH_PARAMS.fields(body, id)
    return filled_name(name, id, index, rest.get("params", {}))


def _unknown(what: str, state: object) -> NoReturn:
    raise CorruptRow(f"{what} has the state {state!r}, which does not exist")


def _common_from(alike: Row) -> Common:
    spec, words, shell, *others = alike
    return Common(
        spec, from_json(words, tuple[str, ...], "of words"), bool(shell), *others
    )


def attempt_row(attempt: Attempt) -> Row:
    """Give an attempt as `save_attempt` takes it."""
    return (
        attempt.job,
        attempt.number,
        attempt.state.value,
        attempt.output_bytes,
        attempt.ran_s,
        _ATTEMPT.text(attempt),
    )


def attempt_from(row: Row) -> Attempt:
    """Read an attempt as `save_attempt` wrote it."""
    job, number, state, output_bytes, ran_s, body = row
    return Attempt(
        job,
        number,
        state=_ATTEMPT_STATES.get(state) or _unknown(f"attempt {job}.{number}", state),
        output_bytes=output_bytes,
        ran_s=ran_s,
        **_ATTEMPT.fields(body, f"{job}.{number}"),
    )


def spec_row(item: tuple[int, Spec]) -> Row:
    """Give a spec as `add_spec` takes it."""
    number, spec = item
    return (number, spec.base_env, json_text(spec))


def spec_from(number: int, body: str) -> Spec:
    """Read a spec's body."""
    return from_json(body, Spec, number)


def queue_row(queue: Queue) -> Row:
    """Give a queue as `save_queue` takes it; its views have rows of their own."""
    return (queue.name, json_text(replace(queue, views={})))


def queue_from(name: str, body: str) -> Queue:
    """Read a queue, without its views."""
    return from_json(body, Queue, name)


def view_row(item: tuple[tuple[str, str], View]) -> Row:
    """Give a view as `save_view` takes it."""
    (queue, worker), view = item
    return (queue, worker, json_text(view))


def view_from(queue: str, worker: str, body: str) -> View:
    """Read a view's body."""
    return from_json(body, View, f"of queue {queue} on {worker}")


def worker_row(worker: Worker) -> Row:
    """Give a worker as `save_worker` takes it."""
    return (worker.id, _WORKER.text(worker))


def worker_from(id: str, body: str) -> Worker:
    """Read a worker; until it calls it is not connected."""
    return Worker(**_WORKER.fields(body, id))


def token_row(token: Token) -> Row:
    """Give a token as `save_token` takes it."""
    return (token.name, json_text(token))


def token_from(name: str, body: str) -> Token:
    """Read a token as `save_token` wrote it."""
    return from_json(body, Token, name)


def pool_row(pool: Pool) -> Row:
    """Give a pool as `save_pool` takes it."""
    return (pool.name, json_text(pool))


def pool_from(name: str, body: str) -> Pool:
    """Read a pool as `save_pool` wrote it."""
    return from_json(body, Pool, name)


def pilot_row(pilot: Pilot) -> Row:
    """Give a pilot as `save_pilot` takes it."""
    return (pilot.mark, json_text(pilot))


def pilot_from(mark: str, body: str) -> Pilot:
    """Read a pilot as `save_pilot` wrote it."""
    return from_json(body, Pilot, mark)


def profile_row(profile: Profile) -> Row:
    """Give a profile as `save_profile` takes it."""
    return (profile.job_type, profile.model, json_text(profile))


def profile_from(job_type: str, body: str) -> Profile:
    """Read a profile as `save_profile` wrote it."""
    return from_json(body, Profile, job_type)


def removal_row(removal: Removal) -> Row:
    """Give a removal as `add_removal` takes it."""
    number, worker, paths, size = removal
    return (number, worker, json_text(paths), size)


def held_sum_row(item: tuple[SumKey, HeldSum]) -> Row:
    """Give a sum as `add_held_sum` takes it."""
    key, held = item
    return (*key, *held)


def held_sum_from(row: Row) -> tuple[SumKey, HeldSum]:
    """Read a sum as `add_held_sum` wrote it."""
    parts = len(SumKey._fields)
    return SumKey(*row[:parts]), HeldSum(*row[parts:])
