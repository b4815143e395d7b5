"""Following a job's output as it comes, over all of its attempts.

It goes on with the next attempt where one fails and is retried, until the job has
ended. What is out of reach of an earlier attempt does not hold up the next one.
"""

import asyncio
from collections.abc import AsyncIterator

from grass.api.queries import number
from grass.api.selecting import details_of
from grass.api.sources import Source, known_attempts, out_of_reach, read, source_of
from grass.broker.service import Broker
from grass.errors import NotFound, Unreachable
from grass.model.job import Attempt
from grass.store.interface import JobDetails


async def started(
    broker: Broker, details: JobDetails, which: str | None
) -> tuple[JobDetails, str | None]:
    """Wait until there is something to follow; gives the job anew, and the attempt.

    Without a wish that is the one that runs, or the next one of a job that will run.
    """
    if which is not None:
        before = max(0, number(which, 0) - 1)
    elif (job := broker.state.jobs.get(details.job.id)) is None:
        return details, None
    else:
        before = job.attempts - (job.id in broker.state.attempts)
    if which is None or number(which, 0) not in {a.number for a in details.attempts}:
        await _until_started(broker, details.job.id, before)
        details = await details_of(broker, details.job.id)
    if which is None and before + 1 in known_attempts(broker, details):
        which = str(before + 1)
    return details, which


async def first_piece(broker: Broker, source: Source, offset: int) -> bytes:
    """Read what following begins with, or raise what keeps it from going on."""
    live = broker.state.attempts.get(source.attempt.job)
    if live is not None and not broker.state.workers[live.worker].connected:
        raise out_of_reach(broker, live)
    try:
        return await read(broker, source, offset)
    except (NotFound, Unreachable):
        if not _goes_on(broker, source.attempt):
            raise
        return b""


async def followed(
    broker: Broker, source: Source, offset: int, data: bytes = b""
) -> AsyncIterator[bytes]:
    """Send what one attempt writes until it has ended, after what has been read."""
    if data:
        offset += len(data)
        yield data
    while True:
        running = _runs(broker, source.attempt)
        data = await read(broker, source, offset)
        if data:
            offset += len(data)
            yield data
        elif not running:
            return
        else:
            await _more_or_end(broker, source, offset)


async def all_followed(
    broker: Broker, source: Source, offset: int, stream: str, data: bytes
) -> AsyncIterator[bytes]:
    """Send what one attempt and all later ones write until the job has ended."""
    job, latest = source.attempt.job, source.attempt.number
    async for piece in _as_far_as_it_goes(broker, source, offset, data):
        yield piece
    while True:
        await _until_started(broker, job, latest)
        known = known_attempts(broker, await details_of(broker, job))
        later = [known[one] for one in sorted(known) if one > latest]
        if not later:
            return
        for attempt in later:
            latest = attempt.number
            following = source_of(attempt, stream)
            if following is not None:
                rest = _as_far_as_it_goes(broker, following, following.begin)
                async for piece in rest:
                    yield piece


async def _as_far_as_it_goes(
    broker: Broker, source: Source, offset: int, data: bytes = b""
) -> AsyncIterator[bytes]:
    """Send what one attempt writes; what is out of reach does not hold up the next."""
    try:
        async for piece in followed(broker, source, offset, data):
            yield piece
    except (NotFound, Unreachable):
        if not _goes_on(broker, source.attempt):
            raise


def _goes_on(broker: Broker, attempt: Attempt) -> bool:
    """Tell whether a job is past an attempt, and has not ended."""
    return not _runs(broker, attempt) and attempt.job in broker.state.jobs


async def _until_started(broker: Broker, job: int, latest: int) -> None:
    """Sleep until the attempt after the latest one writes, or the job has ended."""
    while (known := broker.state.jobs.get(job)) is not None:
        live = broker.state.attempts.get(job)
        if live is None or live.number != latest + 1:
            # It may have come and gone before anybody looked.
            begun = known.attempts > latest
        else:
            begun = live.output is not None
        if begun:
            break
        if live is None:
            await broker.moved(job)
        elif broker.state.workers[live.worker].connected:
            # Its worker may go away first, which moves no job.
            await broker.next_commit()
        else:
            raise out_of_reach(broker, live)
    await broker.written(job)


def _runs(broker: Broker, attempt: Attempt) -> bool:
    live = broker.state.attempts.get(attempt.job)
    return live is not None and live.number == attempt.number


async def _more_or_end(broker: Broker, source: Source, offset: int) -> None:
    """Sleep until the file has grown or the attempt has changed."""
    attempt = source.attempt
    grown = asyncio.ensure_future(
        broker.output.grown(attempt.worker, source.path, offset)
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
