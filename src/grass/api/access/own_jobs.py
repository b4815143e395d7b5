"""Checks for callers that may change only what belongs to them.

With the right `submit` a caller changes the jobs that it enqueued, with `work` the
views and units of its own worker, with `operate` everything.
"""

from starlette.requests import Request

from grass.api.access.auth import actor, identify, may, require
from grass.api.context import context_of
from grass.broker.core.workers import registry
from grass.errors import Forbidden
from grass.model.access import Right
from grass.model.jobs.job import DEFAULT_QUEUE
from grass.model.queue import Queue


async def own_jobs(request: Request, ids: list[int]) -> tuple[list[int], list[str]]:
    """Leave out jobs of other owners, with a warning; raise if none is left."""
    if not ids or may(request, Right.OPERATE):
        return ids, []
    who = actor(request)
    broker = context_of(request).broker
    mine = await broker.read(lambda db: db.owned_by(who, ids))
    left = len(ids) - len(mine)
    if not mine:
        what = f"job {ids[0]} is" if left == 1 else f"these {left} jobs are"
        one = str(ids[0]) if left == 1 else "ID"
        raise Forbidden(
            f"{what} not yours: the role `{identify(request).role}` does not have the"
            " right `operate`",
            f"`grass show {one}` tells whose it is",
        )
    told = "1 job is" if left == 1 else f"{left} jobs are"
    return mine, [f"{told} not yours and left alone"] if left else []


def check_may_pause(request: Request, *, has_max_fails: bool) -> None:
    """Refuse `max_fails` of a caller without the right to pause queues."""
    if has_max_fails and not may(request, Right.OPERATE):
        raise Forbidden(
            "--max-fails pauses the queue for everybody: the role"
            f" `{identify(request).role}` does not have the right `operate`",
            "enqueue the array without it",
        )


def worker_for(request: Request, named: str | None = None) -> str:
    """Return the worker that a call is about; without a name it is the caller's own."""
    context, caller = context_of(request), identify(request)
    state = context.broker.state
    if Right.OPERATE in caller.rights:
        wanted = None if named is None else registry.find(state, named).id
        return wanted or caller.worker or context.worker
    require(request, Right.OPERATE, own=Right.WORK)
    if caller.worker is None:
        raise Forbidden(
            "this token belongs to no worker yet", "start the daemon of that machine"
        )
    # The same message whether or not such a worker exists.
    if named not in (None, caller.worker, registry.name_of(state, caller.worker)):
        raise Forbidden(
            f"worker `{named}` is not yours: the role `{caller.role}` does not have"
            " the right `operate`"
        )
    return caller.worker


def check_queue_is_own(
    request: Request, queue: Queue | None, changes: dict[str, object]
) -> None:
    """Refuse a change of a queue that workers of other owners use."""
    if queue is None or may(request, Right.OPERATE):
        return
    others = queue.name == DEFAULT_QUEUE or set(queue.views) - {worker_for(request)}
    differing = [
        name for name, value in changes.items() if getattr(queue, name) != value
    ]
    if differing and others:
        raise Forbidden(
            f"queue `{queue.name}` is not yours alone: its"
            f" {' and '.join(differing)} needs the right `operate`"
        )
