"""Where the output of one attempt is, and reading it there.

A file may be shared: nothing is read before an attempt's own beginning, nor beyond its
end once that is known. What is on a worker that is away is an error that says so.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import NamedTuple

from grass.broker.core.workers import cloned_homes
from grass.broker.shell.service import Broker
from grass.errors import GrassError, NotFound, Unreachable, UsageError
from grass.model.job import Attempt
from grass.model.lifecycle import AttemptState
from grass.queries.parameters import number
from grass.queries.reachability import absence
from grass.queries.tail import find_end, find_lines
from grass.store.interface import JobDetails

LONGEST_END = 64 * 1024
"""Of the last lines of an output no more bytes are read."""


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


def source_of(attempt: Attempt, stream: str) -> Source | None:
    """Find a stream of an attempt; None where it has none (yet)."""
    path = attempt.stderr if stream == "stderr" else attempt.output
    return None if path is None else Source(attempt, path)


def known_attempts(broker: Broker, details: JobDetails) -> dict[int, Attempt]:
    """Give the attempts of a job by their numbers."""
    known = {one.number: one for one in details.attempts}
    live = broker.state.attempts.get(details.job.id)
    if live is not None:
        # Memory may know of the output's place before it is written down.
        known[live.number] = live
    return known


def chosen(broker: Broker, details: JobDetails, which: int | None) -> Attempt:
    """Return the attempt that was asked for, or else the last one."""
    known = known_attempts(broker, details)
    if not known:
        raise NotFound(f"job {details.job.id} has not started yet")
    if which is None:
        return known[max(known)]
    if which not in known:
        raise UsageError(f"job {details.job.id} has no attempt {which}")
    return known[which]


async def beginning(broker: Broker, source: Source, tail: str | None) -> int:
    """Tell at which byte to begin, for all of a stream or its last lines."""
    if tail is None:
        return source.begin
    lines = number(tail, 0)
    piece = partial(read, broker, source)
    end = await find_end(piece, source.begin) if source.end is None else source.end
    return await find_lines(piece, source.begin, end, lines)


async def last_lines(broker: Broker, details: JobDetails, lines: int) -> bytes:
    """Read the last lines of a job's last attempt, or nothing where there are none."""
    attempt = chosen(broker, details, None)
    source = source_of(attempt, "stderr") or source_of(attempt, "output")
    if source is None:
        return b""
    offset = await beginning(broker, source, str(lines))
    return await read(broker, source, offset, LONGEST_END)


async def read(
    broker: Broker, source: Source, offset: int, length: int | None = None
) -> bytes:
    """Read a piece, nothing beyond the attempt's own end."""
    attempt = source.attempt
    # A copy of its worker's home may have a file of that name: it is another one.
    if cloned_homes.is_apart(broker.state, attempt):
        raise out_of_reach(broker, attempt)
    try:
        data = await broker.output.read(attempt.worker, source.path, offset, length)
    except Unreachable:
        raise out_of_reach(broker, attempt) from None
    return data if source.end is None else data[: max(0, source.end - offset)]


async def pieces(
    broker: Broker, source: Source, offset: int, data: bytes
) -> AsyncIterator[bytes]:
    """Send all there is, the first piece of which has been read."""
    while data:
        offset += len(data)
        yield data
        data = await read(broker, source, offset)


def out_of_reach(broker: Broker, attempt: Attempt) -> GrassError:
    """Say where output is that nobody can read now."""
    state, job = broker.state, attempt.job
    worker = state.workers.get(attempt.worker)
    if worker is None:
        return NotFound(
            f"the output of job {job} is on a worker that was forgotten",
            f"`grass show {job}` names it",
        )
    if cloned_homes.is_apart(state, attempt):
        return Unreachable(
            f"job {job} runs on an unreachable machine that calls itself worker"
            f" `{worker.name}` too",
            f"`grass explain {job}` says what settles that",
        )
    return Unreachable(absence(worker), f"the output of job {job} is there")
