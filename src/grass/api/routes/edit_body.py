"""From a body that changes something to the broker's call.

Only what a body names is changed. Names of fields become those of the broker's
`Settings` and `CreateQueue`, and values are read the same way as for something new.
"""

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Struct

from grass.api.routes import field_checks
from grass.api.routes.request_bodies import (
    EditBody,
    EditQueueBody,
    QueueBody,
    RerunBody,
)
from grass.broker.core.calls import CreateQueue, Edit, EditQueue, Rerun
from grass.broker.core.jobs.reruns import first_read
from grass.errors import UsageError
from grass.model.resources import Request, capacity_from, check_name, request_from

Changes = dict[str, Any]
_Reader = Callable[[Any], object]


def edit_call(body: EditBody, actor: str, jobs: list[int], last_job: int) -> Edit:
    """Read changes to jobs that have not started."""
    changes = _job_changes(body)
    wanted: list[int] = []
    if body.after is not UNSET:
        changes["after"], wanted = field_checks.after(body.after or (), last_job)
    if not changes:
        raise UsageError("nothing to change was given", "for example --priority 5")
    return Edit(actor, jobs, changes, wanted=wanted)


def rerun_call(body: RerunBody, actor: str, jobs: list[int]) -> Rerun:
    """Read how ended jobs run again."""
    return Rerun(actor, jobs, _job_changes(body), body.hold, wanted=first_read(jobs))


def create_queue_call(
    name: str, body: QueueBody, actor: str, worker: str
) -> CreateQueue:
    """Read a queue to create."""
    check_name(name, "queue")
    return CreateQueue(
        actor=actor,
        name=name,
        worker=worker,
        capacity=capacity_from(body.capacity),
        prefix=tuple(body.command),
        cwd=_cwd(body.directory),
        env=field_checks.pairs(body.env),
        default_request=_default_request(body.default_require),
        max_running=_max_running(body.max_running),
        max_fails=field_checks.at_least_one(body.max_fails, "--max-fails"),
    )


def edit_queue_call(
    name: str, body: EditQueueBody, actor: str, worker: str
) -> EditQueue:
    """Read changes to a queue."""
    changes = _changes(body, _QUEUE_FIELDS)
    if not changes:
        raise UsageError("nothing to change was given", "for example --max-running 4")
    return EditQueue(actor, name, worker, changes)


def _job_changes(body: EditBody | RerunBody) -> Changes:
    changes = _changes(body, _JOB_FIELDS)
    if body.command is not UNSET:
        line, words = _words(body.command)
        # Whether one word is a shell line depends on the queue: the broker knows it.
        changes["words"], changes["shell"] = words, True if line else None
    return changes


def _words(command: list[str] | str) -> tuple[bool, tuple[str, ...]]:
    if isinstance(command, str):
        return True, (command,)
    return False, tuple(command)


def _changes(body: Struct, fields: dict[str, tuple[str, _Reader]]) -> Changes:
    changes: Changes = {}
    for field, (name, read) in fields.items():
        value = getattr(body, field, UNSET)
        if value is not UNSET:
            changes[name] = read(value)
    return changes


def _as_it_is(value: object) -> object:
    return value


def _cwd(value: str | None) -> str | None:
    return field_checks.path(value, "--cwd")


def _retries(value: int) -> int:
    return field_checks.count(value, "--retries")


def _default_request(value: str | dict[str, Any] | None) -> Request | None:
    return None if value is None else request_from(value)


def _max_running(value: int | None) -> int | None:
    return field_checks.at_least_one(value, "--max-running", "use `grass pause` for 0")


def _max_fails(value: int | None) -> int | None:
    return field_checks.at_least_one(value, "--max-fails")


_JOB_FIELDS: dict[str, tuple[str, _Reader]] = {
    "require": ("request", field_checks.request),
    "require_also": ("request_also", field_checks.amounts),
    "priority": ("priority", _as_it_is),
    "queue": ("queue", _as_it_is),
    "time_limit_s": ("time_limit_s", field_checks.time_limit),
    "env": ("env", field_checks.pairs),
    "cwd": ("cwd", _cwd),
    "name": ("name", _as_it_is),
    "begin_at": ("begin_at", field_checks.begin_at),
    "retries": ("retries", _retries),
    "worker": ("worker", _as_it_is),
    "labels": ("labels", field_checks.labels),
}
"""What a body calls it, what the broker does, and how its value is read."""

_QUEUE_FIELDS: dict[str, tuple[str, _Reader]] = {
    "capacity": ("capacity", capacity_from),
    "command": ("prefix", tuple),
    "directory": ("cwd", _cwd),
    "env": ("env", field_checks.pairs),
    "default_require": ("default_request", _default_request),
    "max_running": ("max_running", _max_running),
    "max_fails": ("max_fails", _max_fails),
}
