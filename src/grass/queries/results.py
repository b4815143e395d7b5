"""The result of a task: stored with its end, or a file that its runner wrote.

Small ones came with the exit. A file is beside the output, and is read in pieces from
the worker that ran the last attempt, as output is. A job without a result is an error
that says why.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress

from grass.broker.shell.service import Broker
from grass.errors import NoResult, NotFound, Unreachable
from grass.model.jobs.lifecycle import UNFINISHED, JobState
from grass.model.jobs.task_call import result_path
from grass.model.times import rfc3339
from grass.queries.explanations import how_ended
from grass.queries.output import output_sources
from grass.queries.output.output_sources import OutputSource
from grass.queries.selection import details_of
from grass.store.interface import JobDetails, Store

CHUNK = 256 * 1024
AHEAD = 6
"""How many chunks are read ahead of what was sent."""
SMALL = 16 * 1024
"""In bytes: results up to this size are read many at a time."""
TOGETHER = 250
_PAGE = 1000
_ENDS = ("finished", "cancelled")
"""A job is forgotten after the first of these."""
_WITH_RESULT = (JobState.SUCCEEDED, JobState.FAILED)


async def ended_job(broker: Broker, job: int) -> JobDetails:
    """Read a job; of one that was forgotten, say when."""
    try:
        return await details_of(broker, job)
    except NotFound:
        if job > broker.state.last_job:
            raise
    when = await broker.scan(lambda db: _pruned_at(db, job))
    if when is None:
        raise NotFound(f"there is no job {job}")
    raise NoResult(
        f"job {job} was forgotten with its result at {rfc3339(when)}",
        "`grass config show` tells how long jobs are kept",
    )


def _pruned_at(store: Store, job: int) -> int | None:
    """Return when a job was forgotten; None: it is not known."""
    ended = store.events(0, 1, job, _ENDS)
    after = ended[0].seq if ended else 0
    while events := store.events(after, _PAGE, None, ("pruned",)):
        for event in events:
            for first, last in json.loads(event.data).get("ids", ()):
                if first <= job <= last:
                    return event.at
        after = events[-1].seq
    return None


def check_task(broker: Broker, job: int) -> None:
    """Refuse to wait for the result of an unfinished job that can have none."""
    known = broker.state.jobs.get(job)
    if known is not None and broker.state.specs[known.spec].task is None:
        raise _of_command(job)


def _of_command(job: int) -> NoResult:
    return NoResult(
        f"job {job} runs a command, which has no result",
        f"`grass logs {job}` shows what it wrote",
    )


async def first_piece(
    broker: Broker, details: JobDetails
) -> tuple[OutputSource, bytes]:
    """Return where the result of a job is, and its first piece; or say why not."""
    job = details.job
    if details.spec.task is None:
        raise _of_command(job.id)
    if job.state in UNFINISHED:
        raise NoResult(f"job {job.id} has not ended", f"`grass wait {job.id}`")
    source = _source(details)
    if source is None or job.state not in _WITH_RESULT:
        raise _without_result(details)
    if source.attempt.result:
        return source, source.attempt.result
    try:
        return source, await output_sources.read(broker, source, 0, CHUNK)
    except NotFound:
        raise _without_result(details) from None


async def pieces(
    broker: Broker, source: OutputSource, data: bytes
) -> AsyncIterator[bytes]:
    """Yield the first piece of a result and the rest, some of which is read ahead."""
    yield data
    offset, ahead = len(data), deque[asyncio.Future[bytes]]()
    try:
        while len(data) == CHUNK:
            while len(ahead) < AHEAD:
                reading = output_sources.read(broker, source, offset, CHUNK)
                ahead.append(asyncio.ensure_future(reading))
                offset += CHUNK
            data = await ahead.popleft()
            yield data
    finally:
        for one in ahead:
            one.cancel()
        await asyncio.gather(*ahead, return_exceptions=True)


async def small_results(
    broker: Broker, jobs: list[int]
) -> AsyncIterator[tuple[JobDetails, bytes]]:
    """Yield those of these jobs that have a small result, each with it."""
    found = await broker.read(lambda db: db.details(jobs))
    by_worker: dict[str, list[tuple[JobDetails, str]]] = {}
    for details in found:
        source = _source(details)
        if source is None or not _may_have_result(details):
            continue
        if source.attempt.result:
            yield details, source.attempt.result
        else:
            worker = source.attempt.worker
            by_worker.setdefault(worker, []).append((details, source.path))
    for worker, those in by_worker.items():
        for begin in range(0, len(those), TOGETHER):
            some = those[begin : begin + TOGETHER]
            paths = [path for _, path in some]
            with suppress(Unreachable):
                files = await broker.requests.output.read_files(worker, paths, SMALL)
                for (details, _), content in zip(some, files, strict=True):
                    if content is not None:
                        yield details, content


def _may_have_result(details: JobDetails) -> bool:
    return details.spec.task is not None and details.job.state in _WITH_RESULT


def _source(details: JobDetails) -> OutputSource | None:
    if not details.attempts:
        return None
    last = details.attempts[-1]
    path = result_path(last.usage or last.output)
    return None if path is None else OutputSource(last, path)


def _without_result(details: JobDetails) -> NoResult:
    """Return the error for a job that ended and left no result."""
    job = details.job
    if job.state is JobState.SUCCEEDED:
        return NoResult(
            f"the result of job {job.id}, which ended at {rfc3339(job.finished_at)}, is"
            " gone: the setting tasks.keep of its worker says how long one is kept",
            f"`grass rerun {job.id}` computes it again",
        )
    task = details.spec.task
    name = (task and task.name) or job.name
    says = f"`grass logs {job.id}` shows what it wrote" if details.attempts else ""
    return NoResult(
        f"`{name}`, job {job.id}, is {job.state}, and has no result: {how_ended(job)}",
        says,
    )
