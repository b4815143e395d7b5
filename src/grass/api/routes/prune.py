"""Routes that forget ended jobs, with their events and output."""

import time
from functools import partial

from starlette.requests import Request

from grass.api.access.auth import actor
from grass.api.access.own_jobs import own_jobs
from grass.api.context import context_of
from grass.api.routes.request_bodies import PruneBody, SelectBody
from grass.broker.core.calls import Prune
from grass.broker.shell.service import Broker
from grass.errors import Refused
from grass.queries.documents import PrunedReply
from grass.queries.selection import select
from grass.store import Store

BATCH = 500


async def prune(request: Request, body: PruneBody) -> PrunedReply:
    """Forget jobs that ended long ago, with their output."""
    broker = context_of(request).broker
    before = time.time_ns() // 1000 - int(body.older_s * 1_000_000)
    if body.dry_run:
        return PrunedReply(*await broker.read(lambda db: db.usage_before(before)))
    return await prune_before(broker, actor(request), before)


async def remove(request: Request, body: SelectBody) -> PrunedReply:
    """Forget these ended jobs, with their output."""
    broker, who = context_of(request).broker, actor(request)
    ids, left = await own_jobs(request, await select(broker, body.select))
    unfinished = [job for job in ids if job in broker.state.jobs]
    if unfinished == ids and ids:
        raise _not_ended(unfinished)
    total = PrunedReply(0, 0, left)
    if unfinished:
        told = f"{len(unfinished)} jobs have not ended and were left alone"
        total.warnings.append(told)
    async with broker.pruning:
        for begin in range(0, len(ids), BATCH):
            await _forget(broker, who, ids[begin : begin + BATCH], total)
    kept = len(ids) - len(unfinished) - total.jobs
    if kept:
        total.warnings.append(f"{kept} ended jobs stay: others still wait for them")
    return total


async def prune_before(broker: Broker, who: str, before: int) -> PrunedReply:
    """Forget all jobs that ended before a time."""
    total, seen = PrunedReply(0, 0), 0
    async with broker.pruning:
        while True:
            # Skip jobs that cannot be forgotten yet.
            kept = seen - total.jobs
            page = partial(_page, before=before, skip=kept)
            old = await broker.read(page)
            if not old:
                return total
            seen += len(old)
            await _forget(broker, who, old, total)


def _page(store: Store, before: int, skip: int) -> list[int]:
    return store.finished_before(before, BATCH, skip)


async def _forget(broker: Broker, who: str, ids: list[int], total: PrunedReply) -> None:
    pruned = await broker.call(Prune(who, ids, wanted=ids))
    total.jobs += len(pruned)
    total.output_bytes += sum(
        attempt.output_bytes
        for details in pruned
        if details.spec.output is None
        for attempt in details.attempts
    )


def _not_ended(jobs: list[int]) -> Refused:
    if len(jobs) == 1:
        text = f"job {jobs[0]} has not ended"
    else:
        text = f"none of these {len(jobs)} jobs has ended"
    return Refused(text, "`grass cancel` them first, or wait")
