"""The route that reads a job's output: from its beginning, its last lines, as it comes.

Following goes on with the next attempt where one fails and is retried, until the job
has ended. The header `Grass-Begin` names the attempt and the byte a reply begins with;
as `begin` it makes a later reply begin there too, which is how following survives a
restart of the daemon.

A worker that is unreachable is an error before the reply begins, and cuts it off after
that: whoever follows asks again, and is told.
"""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from grass.api.context import context_of
from grass.api.interrupting import CutOff, unless_interrupted, until_closing
from grass.api.queries import number, switch
from grass.api.reaching import absence
from grass.api.selecting import details_of, job_of
from grass.api.tailing import find_end, find_lines
from grass.broker.service import Broker
from grass.errors import GrassError, NotFound, Unreachable, UsageError
from grass.model.job import Attempt
from grass.model.lifecycle import AttemptState
from grass.store.interface import JobDetails

BEGIN_HEADER = "Grass-Begin"
MEDIA_TYPE = "application/octet-stream"


class Source(NamedTuple):
    """One stream of one attempt."""

    attempt: Attempt
    path: str

    @property
    def begin(self) -> int:
        """Where it begins in its file, which may be shared."""
        own = self.path == self.attempt.output
        return self.attempt.output_offset if own else self.attempt.stderr_offset

    @property
    def end(self) -> int | None:
        """Where it ends, once that is known; of a lost attempt it never is."""
        if self.path != self.attempt.output or not self.attempt.finished_at:
            return None
        if self.attempt.state is AttemptState.LOST:
            return None
        # Others may have appended to a shared file since this attempt ended.
        return self.begin + self.attempt.output_bytes


async def output(request: Request) -> Response:
    """Send what an attempt wrote; with `follow`, until the job has ended."""
    query = request.query_params
    broker = context_of(request).broker
    follow = switch(query.get("follow"))
    details = await job_of(request)
    chosen, offset = _where(query.get("begin"))
    wanted = query.get("attempt") or chosen
    if follow:
        starting = _started(broker, details, wanted)
        details, wanted = await unless_interrupted(request, starting)
    first = _chosen(broker, details, wanted)
    stream = "stderr" if query.get("stream") == "stderr" else "output"
    source = _source(first, stream)
    if source is None:
        raise _no_output(details, stream)
    if offset is None:
        offset = await _beginning(broker, source, query.get("tail"))
    offset = max(offset, source.begin)
    if not follow:
        data = await _read(broker, source, offset)
        pieces = _pieces(broker, source, offset, data)
    elif query.get("attempt") is not None:
        data = await _read(broker, source, offset)
        pieces = _followed(broker, source, offset, data)
    else:
        data = await _first_piece(broker, source, offset)
        pieces = _all_followed(broker, source, offset, stream, data)
    pieces = _until_trouble(pieces)
    if follow:
        pieces = until_closing(request.app.state.closing, pieces)
    headers = {BEGIN_HEADER: f"{first.number}:{offset}"}
    return StreamingResponse(pieces, media_type=MEDIA_TYPE, headers=headers)


def _no_output(details: JobDetails, stream: str) -> NotFound:
    job = details.job
    if stream == "stderr" and details.spec.stderr is None:
        return NotFound(f"job {job.id} has no stderr of its own", "see its output")
    if job.finished_at is None:
        return NotFound(f"job {job.id} has no output yet")
    because = f": {job.reason}" if job.reason else ""
    return NotFound(f"job {job.id} has no output{because}")


async def last_lines(broker: Broker, details: JobDetails, lines: int) -> bytes:
    """Read the last lines of a job's last attempt, or nothing where there are none."""
    attempt = _chosen(broker, details, None)
    source = _source(attempt, "stderr") or _source(attempt, "output")
    if source is None:
        return b""
    offset = await _beginning(broker, source, str(lines))
    read = partial(_read, broker, source)
    return await read(offset)


async def _started(
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
    if which is None and before + 1 in _known(broker, details):
        which = str(before + 1)
    return details, which


def _where(text: str | None) -> tuple[str | None, int | None]:
    if text is None:
        return None, None
    attempt, _, offset = text.partition(":")
    return str(number(attempt, 0)), number(offset, 0)


def _source(attempt: Attempt, stream: str) -> Source | None:
    path = attempt.stderr if stream == "stderr" else attempt.output
    return None if path is None else Source(attempt, path)


def _chosen(broker: Broker, details: JobDetails, which: str | None) -> Attempt:
    known = _known(broker, details)
    if not known:
        raise NotFound(f"job {details.job.id} has not started yet")
    if which is None:
        return known[max(known)]
    if not which.isdecimal() or int(which) not in known:
        raise UsageError(f"job {details.job.id} has no attempt {which}")
    return known[int(which)]


def _known(broker: Broker, details: JobDetails) -> dict[int, Attempt]:
    known = {one.number: one for one in details.attempts}
    live = broker.state.attempts.get(details.job.id)
    if live is not None:
        # Memory may know of the output's place before it is written down.
        known[live.number] = live
    return known


async def _beginning(broker: Broker, source: Source, tail: str | None) -> int:
    if tail is None:
        return source.begin
    lines = number(tail, 0)
    read = partial(_read, broker, source)
    end = await find_end(read, source.begin) if source.end is None else source.end
    return await find_lines(read, source.begin, end, lines)


async def _read(
    broker: Broker, source: Source, offset: int, length: int | None = None
) -> bytes:
    """Read a piece, nothing beyond the attempt's own end."""
    ask = {} if length is None else {"length": length}
    worker = source.attempt.worker
    try:
        data = await broker.output.read(worker, source.path, offset, wait=False, **ask)
    except Unreachable:
        raise _out_of_reach(broker, source.attempt) from None
    return data if source.end is None else data[: max(0, source.end - offset)]


async def _first_piece(broker: Broker, source: Source, offset: int) -> bytes:
    """Read what following begins with, or raise what keeps it from going on."""
    live = broker.state.attempts.get(source.attempt.job)
    if live is not None and not broker.state.workers[live.worker].connected:
        raise _out_of_reach(broker, live)
    try:
        return await _read(broker, source, offset)
    except (NotFound, Unreachable):
        if not _goes_on(broker, source.attempt):
            raise
        return b""


def _out_of_reach(broker: Broker, attempt: Attempt) -> GrassError:
    """Say where output is that nobody can read now."""
    if attempt.worker not in broker.state.workers:
        return NotFound(
            f"the output of job {attempt.job} is on a worker that was forgotten",
            f"`grass show {attempt.job}` names it",
        )
    return Unreachable(
        absence(broker.state, attempt.worker),
        f"the output of job {attempt.job} is there",
    )


async def _until_trouble(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass a stream on; cut it off where it cannot go on: it has begun already."""
    try:
        async for piece in pieces:
            yield piece
    except GrassError:
        raise CutOff from None


async def _pieces(
    broker: Broker, source: Source, offset: int, data: bytes
) -> AsyncIterator[bytes]:
    """Send all there is, the first piece of which has been read."""
    while data:
        offset += len(data)
        yield data
        data = await _read(broker, source, offset)


async def _followed(
    broker: Broker, source: Source, offset: int, data: bytes = b""
) -> AsyncIterator[bytes]:
    """Send what one attempt writes until it has ended, after what has been read."""
    if data:
        offset += len(data)
        yield data
    while True:
        running = _runs(broker, source.attempt)
        data = await _read(broker, source, offset)
        if data:
            offset += len(data)
            yield data
        elif not running:
            return
        else:
            await _more_or_end(broker, source, offset)


async def _all_followed(
    broker: Broker, source: Source, offset: int, stream: str, data: bytes
) -> AsyncIterator[bytes]:
    """Send what one attempt and all later ones write until the job has ended."""
    job, latest = source.attempt.job, source.attempt.number
    async for piece in _as_far_as_it_goes(broker, source, offset, data):
        yield piece
    while True:
        await _until_started(broker, job, latest)
        known = _known(broker, await details_of(broker, job))
        later = [known[one] for one in sorted(known) if one > latest]
        if not later:
            return
        for attempt in later:
            latest = attempt.number
            following = _source(attempt, stream)
            if following is not None:
                rest = _as_far_as_it_goes(broker, following, following.begin)
                async for piece in rest:
                    yield piece


async def _as_far_as_it_goes(
    broker: Broker, source: Source, offset: int, data: bytes = b""
) -> AsyncIterator[bytes]:
    """Send what one attempt writes; what is out of reach does not hold up the next."""
    try:
        async for piece in _followed(broker, source, offset, data):
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
            raise _out_of_reach(broker, live)
    await broker.written(job)


def _runs(broker: Broker, attempt: Attempt) -> bool:
    live = broker.state.attempts.get(attempt.job)
    return live is not None and live.number == attempt.number


async def _more_or_end(broker: Broker, source: Source, offset: int) -> None:
    """Sleep until the file has grown or the attempt has changed."""
    attempt = source.attempt
    grown = asyncio.ensure_future(
        broker.output.read(attempt.worker, source.path, offset, wait=True, length=1)
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
