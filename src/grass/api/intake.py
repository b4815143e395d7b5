"""From an enqueue's body to the broker's call.

Jobs of one request that ask for the same share one `Settings`, so that ten thousand
jobs are checked once and stored with one spec.
"""

from operator import attrgetter
from typing import Any

from grass.api.schemas import EnqueueBody, JobBody, QueueBody
from grass.broker.calls import CreateQueue, Enqueue, NewJob, Settings
from grass.errors import UsageError
from grass.model.amounts import size_bytes
from grass.model.resources import Request, capacity_from, check_name, request_from

MOST_JOBS = 100_000
_own_settings = attrgetter(
    *[field for field in JobBody.__struct_fields__ if field not in ("command", "name")]
)
_NOTHING = _own_settings(JobBody())


def enqueue_call(body: EnqueueBody, actor: str) -> Enqueue:
    """Read every job of a request."""
    if len(body.jobs) > MOST_JOBS:
        raise UsageError(
            f"{len(body.jobs)} jobs in one call", f"send at most {MOST_JOBS} at a time"
        )
    if body.key is not None and not body.key.isprintable():
        raise UsageError("an idempotency key is printable text")
    common = _settings(body.defaults, body)
    known: dict[str, Settings] = {}
    jobs = []
    for number, job in enumerate(body.jobs, 1):
        try:
            jobs.append(_new_job(job, body, common, known))
        except UsageError as error:
            where = f"job {number} of {len(body.jobs)}: " if len(body.jobs) > 1 else ""
            raise UsageError(where + error.message, error.hint) from None
    return Enqueue(actor, jobs, body.key, body.environment)


def create_queue_call(
    name: str, body: QueueBody, actor: str, worker: str
) -> CreateQueue:
    """Read a queue to create."""
    check_name(name, "queue")
    default = body.default_require
    if body.max_running is not None and body.max_running < 1:
        raise UsageError("--max-running must be at least 1", "use `grass pause` for 0")
    return CreateQueue(
        actor=actor,
        name=name,
        worker=worker,
        capacity=capacity_from(body.capacity),
        prefix=tuple(body.command),
        cwd=body.directory,
        env=_pairs(body.env),
        default_request=None if default is None else request_from(default),
        max_running=body.max_running,
    )


def _new_job(
    job: JobBody, body: EnqueueBody, common: Settings, known: dict[str, Settings]
) -> NewJob:
    command = body.defaults.command if job.command is None else job.command
    settings = common
    own = _own_settings(job)
    if own != _NOTHING:
        text = repr(own)
        if text not in known:
            known[text] = _settings(_merged(job, body.defaults), body)
        settings = known[text]
    if isinstance(command, str):
        return NewJob((command,), settings, True, job.name)
    return NewJob(tuple(command or ()), settings, None, job.name)


def _merged(job: JobBody, defaults: JobBody) -> JobBody:
    chosen: dict[str, Any] = {}
    for field in JobBody.__struct_fields__:
        own = getattr(job, field)
        chosen[field] = getattr(defaults, field) if own is None else own
    if job.env is not None and defaults.env is not None:
        chosen["env"] = {**defaults.env, **job.env}
    return JobBody(**chosen)


def _settings(job: JobBody, body: EnqueueBody) -> Settings:
    return Settings(
        queue=job.queue,
        request=_request(job.require),
        priority=job.priority or 0,
        project=job.project or "default",
        name=job.name,
        cwd=job.cwd,
        caller_cwd=body.directory,
        env=_pairs(job.env or {}),
        umask=body.umask,
        output=job.output,
        stderr=job.stderr,
        max_output=_size(job.max_output),
        raw=bool(job.raw),
        pin=bool(job.pin),
    )


def _request(value: str | dict[str, Any] | None) -> Request | None:
    return None if value is None else request_from(value, "--require")


def _size(value: int | str | None) -> int | None:
    return size_bytes(value) if isinstance(value, str) else value


def _pairs(env: dict[str, str]) -> tuple[tuple[str, str], ...]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            raise UsageError(f"`{name}` cannot be an environment variable")
    return tuple(env.items())
