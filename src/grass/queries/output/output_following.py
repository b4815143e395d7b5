"""Follows a job's output as it is written, over all of its attempts.

It continues with the next attempt where one fails and is retried, until the job has
ended. Unreachable output of an earlier attempt does not delay the next one.
"""

import asyncio
from collections.abc import AsyncIterator

from grass.broker.shell.service import Broker
from grass.errors import NotFound, Unreachable
from grass.model.jobs.job import Attempt
from grass.queries.constraints import is_unreachable
from grass.queries.output.output_sources import (
    OutputSource,
    chosen,
    known_attempts,
    out_of_reach,
    read,
    source_of,
)
from grass.queries.selection import details_of
from grass.store.interface import JobDetails


async def started(
    broker: Broker, job: int, wanted: int | None
) -> tuple[JobDetails, Attempt]:
    """Wait until there is output to follow; return the job and the attempt.

    Without a wanted that is the one that runs, or the next one of a job that will run.
    """
    which, known = wanted, broker.state.jobs.get(job)
    if wanted is None and known is not None:
        which = known.attempts - (job in broker.state.attempts) + 1
    if which is not None:
        await _until_started(broker, job, max(0, which - 1))
    details = await _caught_up(broker, job)
    if wanted is None and which not in known_attempts(broker, details):
        which = None
    return details, chosen(broker, details, which)


async def first_piece(broker: Broker, source: OutputSource, offset: int) -> bytes:
    """Read the first piece, or raise if following cannot continue."""
    live = broker.state.attempts.get(source.attempt.job)
    if live is not None and is_unreachable(broker.state, live):
        raise out_of_reach(broker, live)
    try:
        return await read(broker, source, offset)
    except (NotFound, Unreachable):
        if not _goes_on(broker, source.attempt):
            raise
        return b""


async def followed(
    broker: Broker, source: OutputSource, offset: int, data: bytes = b""
) -> AsyncIterator[bytes]:
    """Yield what was read, and then what one attempt writes until it has ended."""
    if data:
        offset += len(data)
        yield data
    while True:
        running = runs(broker, source.attempt)
        data = await read(broker, source, offset)
        if data:
            offset += len(data)
            yield data
        elif not running:
            return
        else:
            await _more_or_end(broker, source, offset)


async def all_followed(
    broker: Broker, source: OutputSource, offset: int, stream: str, data: bytes
) -> AsyncIterator[bytes]:
    """Yield what one attempt and all later ones write until the job has ended."""
    job, latest = source.attempt.job, source.attempt.number
    async for piece in _as_far_as_reachable(broker, source, offset, data):
        yield piece
    while True:
        await _until_started(broker, job, latest)
        known = known_attempts(broker, await _caught_up(broker, job))
        later = [known[one] for one in sorted(known) if one > latest]
        if not later:
            return
        for attempt in later:
            latest = attempt.number
            following = source_of(attempt, stream)
            if following is not None:
                rest = _as_far_as_reachable(broker, following, following.begin)
                async for piece in rest:
                    yield piece


async def _as_far_as_reachable(
    broker: Broker, source: OutputSource, offset: int, data: bytes = b""
) -> AsyncIterator[bytes]:
    """Yield what one attempt writes; stop where it is unreachable."""
    try:
        async for piece in followed(broker, source, offset, data):
            yield piece
    except (NotFound, Unreachable):
        if not _goes_on(broker, source.attempt):
            raise


def _goes_on(broker: Broker, attempt: Attempt) -> bool:
    """Return whether an unfinished job is past an attempt."""
    return not runs(broker, attempt) and attempt.job in broker.state.jobs


async def _until_started(broker: Broker, job: int, latest: int) -> None:
    """Wait until the attempt after the latest one writes, or the job has ended."""
    while (known := broker.state.jobs.get(job)) is not None:
        live = broker.state.attempts.get(job)
        if live is None or live.number != latest + 1:
            # It may have started and ended already.
            begun = known.attempts > latest
        else:
            begun = live.output is not None
        if begun:
            break
        if live is None:
            await broker.moved(job)
        elif is_unreachable(broker.state, live):
            raise out_of_reach(broker, live)
        else:
            # Its worker may disconnect first, which changes no job.
            await broker.next_commit()


async def _caught_up(broker: Broker, job: int) -> JobDetails:
    """Read a job, again if an attempt ended meanwhile and left memory.

    Of a running attempt the store may know less than memory.
    """
    while True:
        await broker.written(job)
        live = broker.state.attempts.get(job)
        details = await details_of(broker, job)
        if broker.state.attempts.get(job) is live:
            return details


def runs(broker: Broker, attempt: Attempt) -> bool:
    """Return whether an attempt has not ended."""
    live = broker.state.attempts.get(attempt.job)
    return live is not None and live.number == attempt.number


async def _more_or_end(broker: Broker, source: OutputSource, offset: int) -> None:
    """Wait until the file has grown or the attempt has changed."""
    attempt = source.attempt
    grown = asyncio.ensure_future(
        broker.requests.output.grown(attempt.worker, source.path, offset)
    )
    moved = asyncio.ensure_future(broker.moved(attempt.job))
    tasks = {grown, moved}
    try:
        if runs(broker, attempt):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
