"""From an enqueue's body to the broker's call.

Jobs of one request that ask for the same share one `Settings`, so that ten thousand
jobs are checked once and stored with one spec. An array is one job of the request and
becomes as many as it has indices.
"""

from operator import attrgetter
from typing import Any

from grass.api.routes import field_checks
from grass.api.routes.request_bodies import EnqueueBody, JobBody
from grass.broker.core.calls import Enqueue
from grass.broker.core.jobs.new_job import NewJob, Settings
from grass.broker.core.state import State
from grass.errors import UsageError
from grass.model.arrays import Array, read_array
from grass.model.resources import Request
from grass.model.spec import DEFAULT_MAX_OUTPUT
from grass.settings import Settings as Chosen

MOST_JOBS = 100_000
_own_settings = attrgetter(
    *[field for field in JobBody.__struct_fields__ if field not in ("command", "name")]
)
_NOTHING = _own_settings(JobBody())


def enqueue_call(
    body: EnqueueBody, actor: str, state: State, chosen: Chosen
) -> Enqueue:
    """Read every job of a request; what it leaves open is as the user chose."""
    if len(body.jobs) > MOST_JOBS:
        raise UsageError(
            f"{len(body.jobs)} jobs in one call", f"send at most {MOST_JOBS} at a time"
        )
    if body.key is not None and not body.key.isprintable():
        raise UsageError("an idempotency key is printable text")
    return _Intake(body, state, chosen).call(actor)


class _Intake:
    """The reading of one request."""

    def __init__(self, body: EnqueueBody, state: State, chosen: Chosen) -> None:
        self._body = body
        self._state = state
        self._chosen = chosen
        self._wanted: dict[int, None] = {}
        self._known: dict[str, Settings] = {}
        self._array = _array(body)

    def call(self, actor: str) -> Enqueue:
        body = self._body
        common = self._settings(body.defaults)
        jobs = [self._numbered(number, common) for number in range(len(body.jobs))]
        if self._array is not None:
            jobs = _members(jobs[0], self._array)
        wanted = list(self._wanted)
        field_checks.pairs(body.environment or {})
        field_checks.path(body.directory, "directory")
        return Enqueue(actor, jobs, body.key, body.environment, wanted=wanted)

    def _numbered(self, number: int, common: Settings) -> NewJob:
        """Read one job; where there are several, an error says which one is wrong."""
        count = len(self._body.jobs)
        try:
            return self._new_job(self._body.jobs[number], common)
        except UsageError as error:
            where = f"job {number + 1} of {count}: " if count > 1 else ""
            raise UsageError(where + error.message, error.hint) from None

    def _new_job(self, job: JobBody, common: Settings) -> NewJob:
        defaults = self._body.defaults
        command = defaults.command if job.command is None else job.command
        settings = common
        own = _own_settings(job)
        if own != _NOTHING:
            text = repr(own)
            if text not in self._known:
                self._known[text] = self._settings(_merged(job, defaults))
            settings = self._known[text]
        if isinstance(command, str):
            return NewJob((command,), settings, True, job.name)
        return NewJob(tuple(command or ()), settings, None, job.name)

    def _settings(self, job: JobBody) -> Settings:
        after, named = field_checks.after(job.after or (), self._state.last_job)
        self._wanted.update(dict.fromkeys(named))
        chosen = self._chosen
        queue = job.queue or chosen.queue
        return Settings(
            queue=queue,
            request=self._request(job, queue),
            priority=chosen.priority if job.priority is None else job.priority,
            project=job.project or chosen.project,
            name=job.name,
            cwd=field_checks.path(job.cwd, "--cwd"),
            caller_cwd=self._body.directory,
            env=field_checks.pairs(job.env or {}),
            umask=self._body.umask,
            output=field_checks.path(job.output, "--output"),
            stderr=field_checks.path(job.stderr, "--stderr"),
            max_output=_max_output(job),
            raw=bool(job.raw),
            pin=bool(job.pin),
            after=after,
            begin_at=field_checks.begin_at(job.begin_at),
            hold=bool(job.hold),
            at_most=None if self._array is None else self._array.at_most,
            max_fails=self._max_fails(job.max_fails),
            worker=job.worker,
            labels=field_checks.labels(job.labels),
            **_limits(job, chosen.grace_s),
        )

    def _request(self, job: JobBody, queue: str) -> Request | None:
        """Read what a job asks for; a queue's own default goes before the user's."""
        if job.require is not None:
            return field_checks.request(job.require)
        known = self._state.queues.get(queue)
        has_default = known is not None and known.default_request is not None
        return None if has_default else self._chosen.require

    def _max_fails(self, value: int | None) -> int | None:
        if value is not None and self._array is None:
            raise UsageError(
                "--max-fails goes with --array",
                "for all jobs of a queue: `grass edit-queue NAME --max-fails N`",
            )
        return field_checks.at_least_one(value, "--max-fails")


def _array(body: EnqueueBody) -> Array | None:
    asked = [job.array for job in body.jobs if job.array is not None]
    text = asked[0] if asked else body.defaults.array
    if text is None:
        return None
    if len(body.jobs) != 1:
        raise UsageError(
            f"--array goes with one command, not with {len(body.jobs)}",
            "enqueue each array by itself",
        )
    return read_array(text)


def _members(job: NewJob, array: Array) -> list[NewJob]:
    return [
        NewJob(job.words, job.settings, job.shell, job.name, index)
        for index in array.indices
    ]


def _limits(job: JobBody, grace_s: float) -> dict[str, Any]:
    """Read what bounds a job's run, and what follows when it fails."""
    grace = grace_s if job.grace_s is None else job.grace_s
    return {
        "grace_s": field_checks.seconds(grace, "--grace"),
        "time_limit_s": field_checks.time_limit(job.time_limit_s),
        "retries": field_checks.count(job.retries or 0, "--retries"),
        "backoff_s": field_checks.seconds(job.backoff_s or 0.0, "--backoff"),
        "retry_on": field_checks.failures(job.retry_on or ()),
        "retry_lost": field_checks.count(job.retry_lost or 0, "--retry-lost"),
        "nice": field_checks.count(job.nice or 0, "--nice", field_checks.NICEST),
    }


def _merged(job: JobBody, defaults: JobBody) -> JobBody:
    chosen: dict[str, Any] = {}
    for field in JobBody.__struct_fields__:
        own = getattr(job, field)
        chosen[field] = getattr(defaults, field) if own is None else own
    if job.env is not None and defaults.env is not None:
        chosen["env"] = {**defaults.env, **job.env}
    return JobBody(**chosen)


def _max_output(job: JobBody) -> int:
    size = field_checks.size(job.max_output)
    return DEFAULT_MAX_OUTPUT if size is None else size
