"""The route that reads a job's output, from its beginning or as it comes."""

import asyncio
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from grass.api.context import context_of
from grass.api.jobs import job_of
from grass.api.peer import actor
from grass.broker.service import Broker
from grass.errors import NotFound, UsageError
from grass.model.job import Attempt, Job
from grass.store.interface import JobDetails


async def output(request: Request) -> Response:
    """Send what an attempt wrote; with `follow`, until the job has ended."""
    actor(request)
    broker = context_of(request).broker
    details = await job_of(request)
    follow = request.query_params.get("follow") in ("1", "true")
    wants_stderr = request.query_params.get("stream") == "stderr"
    if follow:
        await _until_started(broker, details.job)
        details = await job_of(request)
    attempt = _chosen(broker, details, request.query_params.get("attempt"))
    path = attempt.stderr if wants_stderr else attempt.output
    if path is None:
        raise NotFound(f"job {details.job.id} has no output yet")
    pieces = _pieces(broker, attempt, path, follow=follow)
    return StreamingResponse(pieces, media_type="application/octet-stream")


async def _until_started(broker: Broker, job: Job) -> None:
    while job.id in broker.state.jobs:
        attempt = broker.state.attempts.get(job.id)
        if attempt is not None and attempt.output is not None:
            return
        await broker.moved(job.id)
    await broker.written(job.id)


def _chosen(broker: Broker, details: JobDetails, number: str | None) -> Attempt:
    live = broker.state.attempts.get(details.job.id)
    known = {one.number: one for one in details.attempts}
    if live is not None:
        # Memory may know of the output's place before it is written down.
        known[live.number] = live
    if not known:
        raise NotFound(f"job {details.job.id} has not started yet")
    if number is None:
        return known[max(known)]
    if not number.isdecimal() or int(number) not in known:
        raise UsageError(f"job {details.job.id} has no attempt {number}")
    return known[int(number)]


async def _pieces(
    broker: Broker, attempt: Attempt, path: str, *, follow: bool
) -> AsyncIterator[bytes]:
    offset = attempt.output_offset if path == attempt.output else 0
    end = offset + attempt.output_bytes if attempt.finished_at else None
    while True:
        running = follow and _runs(broker, attempt)
        data = await broker.output.read(attempt.worker, path, offset, wait=False)
        if end is not None and path == attempt.output:
            # Others may have appended to a shared file since this attempt ended.
            data = data[: max(0, end - offset)]
        if data:
            offset += len(data)
            yield data
        elif not running:
            return
        else:
            await _more_or_end(broker, attempt, path, offset)


def _runs(broker: Broker, attempt: Attempt) -> bool:
    live = broker.state.attempts.get(attempt.job)
    return live is not None and live.number == attempt.number


async def _more_or_end(
    broker: Broker, attempt: Attempt, path: str, offset: int
) -> None:
    """Sleep until the file has grown or the attempt has changed."""
    grown = asyncio.ensure_future(
        broker.output.read(attempt.worker, path, offset, wait=True, length=1)
    )
    moved = asyncio.ensure_future(broker.moved(attempt.job))
    tasks = {grown, moved}
    try:
        if _runs(broker, attempt):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
