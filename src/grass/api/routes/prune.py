"""Routes that forget ended jobs, with their events and output."""

import time

from starlette.requests import Request

from grass.api.access.auth import actor
from grass.api.access.own_jobs import own_jobs
from grass.api.context import context_of
from grass.api.routes.request_bodies import PruneBody, SelectBody
from grass.broker.shell.pruning import prune_before, prune_jobs
from grass.errors import Refused
from grass.queries.documents import PrunedReply
from grass.queries.selection import select


async def prune(request: Request, body: PruneBody) -> PrunedReply:
    """Forget jobs that ended long ago, with their output."""
    broker = context_of(request).broker
    before = time.time_ns() // 1000 - int(body.older_s * 1_000_000)
    if body.dry_run:
        return PrunedReply(*await broker.read(lambda db: db.usage_before(before)))
    return PrunedReply(*await prune_before(broker, actor(request), before))


async def remove(request: Request, body: SelectBody) -> PrunedReply:
    """Forget these ended jobs, with their output."""
    broker, who = context_of(request).broker, actor(request)
    ids = await select(broker, body.select, union=body.any)
    ids, warnings = await own_jobs(request, ids)
    unfinished = [job for job in ids if job in broker.state.jobs]
    if unfinished == ids and ids:
        raise _not_ended(unfinished)
    if unfinished:
        warnings.append(f"{len(unfinished)} jobs have not ended and were left alone")
    pruned = await prune_jobs(broker, who, ids)
    kept = len(ids) - len(unfinished) - pruned.jobs
    if kept:
        warnings.append(f"{kept} ended jobs stay: others still wait for them")
    return PrunedReply(pruned.jobs, pruned.output_bytes, warnings)


def _not_ended(jobs: list[int]) -> Refused:
    if len(jobs) == 1:
        text = f"job {jobs[0]} has not ended"
    else:
        text = f"none of these {len(jobs)} jobs has ended"
    return Refused(text, "`grass cancel` them first, or wait")
