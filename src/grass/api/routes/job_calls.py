"""From bodies about jobs to the broker's calls.

Jobs of one request that give the same share one `JobPatch`, so that ten thousand jobs
are checked once and stored with one spec. An array is one job of the request and
becomes as many as it has indices, or rows of parameters.
"""

from operator import attrgetter
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from grass.api.routes.request_bodies import (
    EditBody,
    EnqueueBody,
    JobBody,
    RerunBody,
)
from grass.broker.core.calls import Edit, Enqueue, NewJob, Rerun
from grass.broker.core.jobs.reruns import first_read
from grass.broker.core.state import State
from grass.errors import NotFound, UsageError
from grass.model import field_readers
from grass.model.id_runs import merged_runs
from grass.model.jobs import params
from grass.model.jobs.arrays import MOST_MEMBERS, Array, read_array
from grass.model.jobs.dependencies import runs_of
from grass.model.jobs.spec import JobPatch, given, job_fields
from grass.model.jobs.task_call import read_arguments
from grass.model.resources import split_auto
from grass.settings import Settings

MOST_JOBS = 100_000
_OF_THE_CALL = ("select", "any", "hold", "first", "before")
"""Fields of a body that changes jobs which are not about one of them."""
_DEFAULT_WHERE_EMPTY = ("queue", "project")
_OF_AN_ARRAY = {
    "max_fails": "for all jobs of a queue: `grass edit-queue NAME --max-fails N`",
    "at_most": "for all jobs of a queue: `grass edit-queue NAME --max-running N`",
}
"""Options about the members of an array, and what is there for other jobs."""
_OPTIONS = tuple(
    name
    for name in JobBody.__struct_fields__
    if name not in ("command", "name", "array", "arguments")
)
_options_of = attrgetter(*_OPTIONS)
_NO_OPTIONS = _options_of(JobBody())
_read_directory = field_readers.path("directory")


def enqueue_call(
    body: EnqueueBody, actor: str, state: State, settings: Settings
) -> Enqueue:
    """Read every job of a request; what it leaves open is as the settings say."""
    if len(body.jobs) > MOST_JOBS:
        raise UsageError(
            f"{len(body.jobs)} jobs in one call", f"send at most {MOST_JOBS} at a time"
        )
    if body.key is not None and not body.key.isprintable():
        raise UsageError("an idempotency key is printable text")
    return _EnqueueReader(body, state, settings).call(actor)


def drop_callers_files(body: EnqueueBody) -> None:
    """Drop what is about the caller's machine, as it is another than this one.

    The directory stays, as a name: a worker that lacks it returns the job's start.
    """
    body.environment = body.umask = None
    for job in (body.defaults, *body.jobs):
        if job.task is not None:
            job.task = replace(job.task, interpreter="")


def blobs_of(call: Enqueue) -> list[str]:
    """Return the blobs that new jobs name, each once."""
    names: dict[str, None] = {}
    for job in call.jobs:
        if job.patch.task:
            names[job.patch.task.function] = None
            if job.arguments is not None and job.arguments.blob:
                names[job.arguments.blob] = None
    return list(names)


def edit_call(body: EditBody, actor: str, jobs: list[int], last_job: int) -> Edit:
    """Read changes to jobs that have not started."""
    patch = _patch_of(body, last_job)
    if body.before is not None:
        if given(patch) or body.first:
            raise UsageError("--before changes nothing else", "make two calls of it")
        return Edit(actor, jobs, patch, before=body.before)
    if not given(patch) and not body.first:
        raise UsageError("nothing to change was given", "for example --priority 5")
    if body.first and patch.priority is not UNSET:
        raise UsageError("--first sets the priority itself", "leave out --priority")
    return Edit(actor, jobs, patch, body.first, named=runs_of(patch.after or ()))


def rerun_call(body: RerunBody, actor: str, jobs: list[int], last_job: int) -> Rerun:
    """Read how ended jobs run again."""
    patch = _patch_of(body, last_job)
    return Rerun(actor, jobs, patch, body.hold, wanted=first_read(jobs))


def _patch_of(body: Struct, last_job: int) -> JobPatch:
    """Read the changes of a body, whose other fields are not about one job."""
    asked = given(body)
    command = asked.pop("command", UNSET)
    changes = {name: asked[name] for name in asked if name not in _OF_THE_CALL}
    patch = JobPatch(**job_fields(changes, last_job))
    if command is UNSET:
        return patch
    is_line = isinstance(command, str)
    words = (command,) if is_line else tuple(command)
    # Whether one word of a list is a shell line depends on the queue.
    return replace(patch, words=words, shell=is_line or None)


class _EnqueueReader:
    """The reading of one request that adds jobs."""

    def __init__(self, body: EnqueueBody, state: State, settings: Settings) -> None:
        self._body = body
        self._state = state
        self._settings = settings
        self._defaults = _options(body.defaults)
        if body.defaults.name is not None:
            self._defaults["name"] = body.defaults.name
        self._named: list[tuple[int, int]] = []
        self._known: dict[str, JobPatch] = {}
        self._array = _array(body)

    def call(self, actor: str) -> Enqueue:
        body = self._body
        common = self._patch(self._defaults)
        jobs = [self._numbered(number, common) for number in range(len(body.jobs))]
        self._check_usual_queue(jobs)
        if self._array is not None:
            jobs = _members(jobs[0], self._array, body)
        field_readers.pairs(body.environment or {})
        return Enqueue(
            actor,
            jobs,
            body.key,
            body.environment,
            _read_directory(body.directory),
            named=merged_runs(self._named),
        )

    def _numbered(self, number: int, common: JobPatch) -> NewJob:
        """Read one job; where there are several, an error says which one is wrong."""
        count = len(self._body.jobs)
        try:
            return self._new_job(self._body.jobs[number], common)
        except UsageError as error:
            where = f"job {number + 1} of {count}: " if count > 1 else ""
            error.job = number + 1
            raise error.reworded(where + error.message) from None

    def _new_job(self, job: JobBody, common: JobPatch) -> NewJob:
        command = self._body.defaults.command if job.command is None else job.command
        patch = common
        own = _options_of(job)
        if own != _NO_OPTIONS:
            text = repr(own)
            if text not in self._known:
                self._known[text] = self._patch(self._over_defaults(job))
            patch = self._known[text]
        if isinstance(command, str):
            return NewJob((command,), patch, True, job.name)
        arguments = None if job.arguments is None else read_arguments(job.arguments)
        if arguments is not None and not patch.task:
            raise UsageError("only a task has arguments", "give a `task` as well")
        words = tuple(command or ())
        return NewJob(words, patch, None, job.name, arguments=arguments)

    def _over_defaults(self, job: JobBody) -> dict[str, Any]:
        """Add a job's options to the call's; a whole request is all it asks for."""
        options, defaults = _options(job), self._defaults
        merged = {**defaults, **options}
        for name in ("env", "require_also"):
            if name in options and name in defaults:
                merged[name] = {**defaults[name], **options[name]}
        if "require" in options and "require_also" not in options:
            merged.pop("require_also", None)
        return merged

    def _patch(self, options: dict[str, Any]) -> JobPatch:
        """Read options, with the settings and the rest of the call in their place."""
        settings, array = self._settings, self._array
        for name, otherwise in _OF_AN_ARRAY.items():
            if name in options and array is None:
                option = "--" + name.replace("_", "-")
                raise UsageError(f"{option} goes with --array or :::", otherwise)
        fields = {
            "queue": settings.queue,
            "project": settings.project,
            "priority": settings.priority,
            "grace_s": settings.grace_s,
            **job_fields(options, self._state.last_job),
            "umask": self._body.umask,
        }
        if array is not None and array.at_most is not None:
            if "at_most" in options:
                raise UsageError("both --at-most and % say how many run", "give one")
            fields["at_most"] = array.at_most
        if array is not None and fields.get("sbatch") is not None:
            fields["sbatch"] = fields["sbatch"].of_array(array)
        if "request" not in fields:
            fields = {**self._default_request(fields["queue"]), **fields}
        patch = JobPatch(**fields)
        self._named += runs_of(patch.after or ())
        return patch

    def _check_usual_queue(self, jobs: list[NewJob]) -> None:
        """Name the setting where the queue that it names does not exist."""
        queue = self._settings.queue
        missing = queue not in self._state.queues
        if missing and any(job.patch.queue == queue for job in jobs):
            raise NotFound(
                f"there is no queue `{queue}`, and defaults.queue names it",
                f"`grass create-queue {queue}`, or `grass config unset defaults.queue`"
                " and `grass restart`",
            )

    def _default_request(self, queue: str) -> dict[str, Any]:
        """Return what the settings ask for, unless the queue has its own default."""
        known = self._state.queues.get(queue)
        has_default = known is not None and known.default_request is not None
        asked = self._settings.require
        if has_default or asked is None:
            return {}
        request, auto_vram = split_auto(asked)
        return {"request": request, "auto_vram": auto_vram}


def _options(job: JobBody) -> dict[str, Any]:
    """Return the options that a job gives, by their names in the request."""
    fields = zip(_OPTIONS, _options_of(job), strict=True)
    return {
        name: value
        for name, value in fields
        if value is not None and (value != "" or name not in _DEFAULT_WHERE_EMPTY)
    }


def _array(body: EnqueueBody) -> Array | None:
    asked = [job.array for job in body.jobs if job.array is not None]
    text = asked[0] if asked else body.defaults.array
    given = [one for one in (text, body.params, body.arguments) if one is not None]
    if not given:
        return None
    if len(given) > 1:
        raise UsageError("both --array and parameters say how many jobs", "give one")
    if len(body.jobs) != 1:
        what = "--array goes" if text is not None else "parameters go"
        raise UsageError(
            f"{what} with one command, not with {len(body.jobs)}",
            "enqueue each array by itself",
        )
    if body.params is not None:
        return Array(list(range(1, len(body.params.rows) + 1)))
    if body.arguments is not None:
        return Array(list(range(1, len(body.arguments) + 1)))
    return None if text is None else read_array(text)


def _members(job: NewJob, array: Array, body: EnqueueBody) -> list[NewJob]:
    if body.arguments is not None:
        return _tasks(job, array, body.arguments)
    none: list[None] = [None] * len(array.indices)
    rows = body.params
    own = none if rows is None else params.rows(rows.names, rows.rows)
    return [
        NewJob(job.words, job.patch, job.shell, job.name, index, given)
        for index, given in zip(array.indices, own, strict=True)
    ]


def _tasks(job: NewJob, array: Array, arguments: list[str]) -> list[NewJob]:
    if not job.patch.task:
        raise UsageError("only a task has arguments", "give a `task` as well")
    if not arguments or len(arguments) > MOST_MEMBERS:
        raise UsageError(f"{len(arguments):,} tasks", f"give 1 to {MOST_MEMBERS:,}")
    return [
        NewJob(
            job.words, job.patch, None, job.name, index, arguments=read_arguments(text)
        )
        for index, text in zip(array.indices, arguments, strict=True)
    ]
