"""Values to rows and back.

Text that may hold bytes which are not UTF-8 (commands, environments, directories) is
stored as JSON with such bytes escaped, because databases take only real text.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from grass.model.job import Attempt, Common, Job
from grass.model.lifecycle import AttemptState, JobState
from grass.model.queue import Queue, View
from grass.model.resources import Request
from grass.model.spec import Spec
from grass.model.token import Token
from grass.model.worker import Found, Unit, Worker
from grass.store.changes import json_text

Row = tuple[Any, ...]

_decode = json.JSONDecoder().raw_decode
COMMON_COLUMNS = 11
"""So many columns of a job are its id and what jobs may have alike."""
OWN_COLUMNS = COMMON_COLUMNS + 1
"""And then its state, before its index and what became of it, if that is read."""
_STATES = {state.value: state for state in JobState}


def job_row(job: Job) -> Row:
    """Give a job as `save_job` takes it."""
    return (
        job.id,
        *common_row(job.common),
        job.state.value,
        job.index,
        job.started_at,
        job.finished_at,
        job.exit_code,
        job.signal,
        job.reason,
        job.attempts,
        job.stopping_since,
        job.not_before,
        job.failures,
        job.losses,
        job.suspended_since,
        job.met,
    )


def common_row(common: Common) -> Row:
    """Give what jobs have alike as the columns after their id have it."""
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


def job_from(row: Row) -> Job:
    """Read a job as `save_job` wrote it."""
    (job,) = jobs_from([row])
    return job


def jobs_from(rows: Iterable[Row]) -> Iterator[Job]:
    """Read jobs as `save_job` wrote them.

    Those that follow on each other and have most alike share it, as they did before.
    """
    common, alike = None, ()
    for row in rows:
        if common is None or row[1:COMMON_COLUMNS] != alike:
            alike = row[1:COMMON_COLUMNS]
            common = _common_from(alike)
        job = Job(row[0], common, _STATES[row[COMMON_COLUMNS]], *row[OWN_COLUMNS:])
        job.met = bool(job.met)
        yield job


def _common_from(alike: Row) -> Common:
    spec, words, shell, *others = alike
    return Common(spec, tuple(_decode(words)[0]), bool(shell), *others)


def attempt_row(attempt: Attempt) -> Row:
    """Give an attempt as `save_attempt` takes it."""
    return (
        attempt.job,
        attempt.number,
        attempt.worker,
        attempt.boot,
        attempt.state.value,
        json_text(attempt.allocation),
        attempt.started_at,
        attempt.finished_at,
        attempt.pid,
        attempt.exit_code,
        attempt.signal,
        attempt.reason,
        None if attempt.output is None else json_text(attempt.output),
        attempt.output_offset,
        attempt.output_bytes,
        None if attempt.stderr is None else json_text(attempt.stderr),
        attempt.stderr_offset,
        attempt.max_rss,
        attempt.cpu_s,
        attempt.after,
        attempt.ran_s,
    )


def attempt_from(row: Row) -> Attempt:
    """Read an attempt as `save_attempt` wrote it."""
    fields = list(row)
    fields[4] = AttemptState(row[4])
    fields[5] = json.loads(row[5])
    for place in (12, 15):
        fields[place] = None if row[place] is None else json.loads(row[place])
    return Attempt(*fields)


def spec_from(body: str) -> Spec:
    """Read a spec's body."""
    return msgspec.convert(json.loads(body), Spec)


def view_from(body: str) -> View:
    """Read a view's body."""
    return msgspec.convert(json.loads(body), View)


def queue_row(queue: Queue) -> Row:
    """Give a queue as `save_queue` takes it; its views have rows of their own."""
    request = (
        None if queue.default_request is None else json_text(queue.default_request)
    )
    return (
        queue.name,
        queue.created_at,
        queue.paused,
        request,
        queue.max_running,
        queue.max_fails,
        queue.fails,
        queue.paused_reason,
    )


def queue_from(row: Row) -> Queue:
    """Read a queue, without its views."""
    name, created_at, paused, request, max_running, *rest = row
    default = None if request is None else msgspec.json.decode(request, type=Request)
    return Queue(name, created_at, bool(paused), default, max_running, {}, *rest)


def worker_row(worker: Worker) -> Row:
    """Give a worker as `save_worker` takes it."""
    bodies = map(json_text, (worker.found, worker.added, worker.drained))
    return (
        worker.id,
        worker.name,
        worker.boot,
        *bodies,
        json_text(worker.labels),
        worker.lease_s,
        worker.resting,
        worker.address,
        worker.heard_at,
        worker.instance,
        json_text(worker.apart),
        worker.resting_reason,
    )


def worker_from(row: Row) -> Worker:
    """Read a worker; until it calls it is not connected."""
    found: Found = msgspec.json.decode(row[3], type=dict[str, dict[str, Unit]])
    added = msgspec.json.decode(row[4], type=dict[str, dict[str, int]])
    drained = msgspec.json.decode(row[5], type=dict[str, list[str]])
    id, name, boot = row[:3]
    labels, lease_s, resting, address, heard_at, instance, apart, why = row[6:]
    return Worker(
        id,
        name,
        boot,
        found,
        added,
        connected=False,
        drained=drained,
        labels=tuple(json.loads(labels)),
        lease_s=lease_s,
        resting=bool(resting),
        resting_reason=why,
        address=address,
        heard_at=heard_at,
        instance=instance,
        apart=json.loads(apart),
    )


def token_row(token: Token) -> Row:
    """Give a token as `save_token` takes it."""
    return msgspec.structs.astuple(token)


def token_from(row: Row) -> Token:
    """Read a token as `save_token` wrote it."""
    fields = (*row[:6], bool(row[6]), *row[7:])
    return Token(*fields)
