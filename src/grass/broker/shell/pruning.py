"""Forgets ended jobs in batches, with their events and output.

A broker prunes for one caller at a time: two would count the same jobs.
"""

from functools import partial
from typing import NamedTuple

from grass.broker.core.calls import Prune
from grass.broker.shell.service import Broker
from grass.store.interface import JobDetails, Store

BATCH = 500


class PrunedJobs(NamedTuple):
    """How much was forgotten."""

    jobs: int = 0
    output_bytes: int = 0


async def prune_jobs(broker: Broker, actor: str, ids: list[int]) -> PrunedJobs:
    """Forget these jobs, unless they have not ended or others wait for them."""
    total = PrunedJobs()
    async with broker.pruning:
        for begin in range(0, len(ids), BATCH):
            total = await _forget(broker, actor, ids[begin : begin + BATCH], total)
    return total


async def prune_before(broker: Broker, actor: str, before: int) -> PrunedJobs:
    """Forget all jobs that ended before a time."""
    total, seen = PrunedJobs(), 0
    async with broker.pruning:
        while True:
            # Skip jobs that cannot be forgotten yet.
            kept = seen - total.jobs
            page = partial(_page, before=before, skip=kept)
            old = await broker.read(page)
            if not old:
                return total
            seen += len(old)
            total = await _forget(broker, actor, old, total)


def _page(store: Store, before: int, skip: int) -> list[int]:
    return store.finished_before(before, BATCH, skip)


async def _forget(
    broker: Broker, actor: str, ids: list[int], total: PrunedJobs
) -> PrunedJobs:
    pruned = await broker.call(Prune(actor, ids, wanted=ids))
    await broker.blobs.forget(_blobs(pruned))
    if broker.requests.output.kept is not None:
        broker.requests.output.kept.remove(_left_behind(broker, pruned))
    output_bytes = sum(
        attempt.output_bytes
        for details in pruned
        if details.spec.output is None
        for attempt in details.attempts
    )
    return PrunedJobs(total.jobs + len(pruned), total.output_bytes + output_bytes)


def _left_behind(broker: Broker, pruned: list[JobDetails]) -> list[str]:
    """Return the output of these jobs that no worker is there to remove."""
    return [
        attempt.output
        for details in pruned
        if details.spec.output is None
        for attempt in details.attempts
        if attempt.output and attempt.worker not in broker.state.workers
    ]


def _blobs(pruned: list[JobDetails]) -> list[str]:
    """Return what these jobs named, which nobody else may name."""
    functions = [one.spec.task.function for one in pruned if one.spec.task is not None]
    return functions + [
        one.job.arguments_blob for one in pruned if one.job.arguments_blob
    ]
