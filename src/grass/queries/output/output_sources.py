"""Locates and reads the output of one attempt.

A file may be shared: nothing is read before an attempt's own beginning, nor beyond its
end once that is known. Output on a disconnected worker is an error.

A worker tells the size of a file with what it found in a part of it. One of an older
version does not: there `find_end` probes twice as far each time and then halves, so a
file of any length takes a few dozen small reads. `find_lines` counts lines backwards, a
piece at a time. In a file of gigabytes without a newline the search stops after
`LONGEST_LINE`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NamedTuple

from grass.broker.shell.service import Broker
from grass.errors import GrassError, NotFound, Refused, Unreachable, UsageError
from grass.link.requests import LineScan, ScannedLines
from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import AttemptState
from grass.queries.constraints import absence
from grass.store.interface import JobDetails

LONGEST_END = 256 * 1024
"""Of the last lines of an output no more bytes are read, those at its end."""
PIECE = 32 * 1024
LONGEST_LINE = 1024 * 1024
"""How far back the beginning of one line is looked for."""

ReadPiece = Callable[[int, int], Awaitable[bytes]]
"""Takes an offset and a length; returns nothing beyond the end."""


class OutputSource(NamedTuple):
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
        """Where it ends, once that is known; never for a lost attempt."""
        if self.path != self.attempt.output or not self.attempt.finished_at:
            return None
        if self.attempt.state is AttemptState.LOST:
            return None
        # Others may have appended to a shared file since this attempt ended.
        return self.begin + self.attempt.output_bytes

    @property
    def is_empty(self) -> bool:
        """Whether it is known that nothing was written: then there may be no file."""
        return self.end == self.begin


def source_of(attempt: Attempt, stream: str) -> OutputSource | None:
    """Return a stream of an attempt; None where it has none (yet)."""
    path = attempt.stderr if stream == "stderr" else attempt.output
    return None if path is None else OutputSource(attempt, path)


def known_attempts(broker: Broker, details: JobDetails) -> dict[int, Attempt]:
    """Return the attempts of a job by number."""
    known = {one.number: one for one in details.attempts}
    live = broker.state.attempts.get(details.job.id)
    if live is not None:
        # Memory may know the output's path before the store does.
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


async def beginning(broker: Broker, source: OutputSource, lines: int | None) -> int:
    """Return the byte at which all of a stream, or its last lines, begin."""
    if lines is None:
        return source.begin
    end = await end_of_stream(broker, source)
    return await find_lines(partial(read, broker, source), source.begin, end, lines)


async def last_lines(broker: Broker, details: JobDetails, lines: int) -> bytes:
    """Read the last lines of a job's last attempt, or nothing where there are none."""
    attempt = chosen(broker, details, None)
    source = source_of(attempt, "stderr") or source_of(attempt, "output")
    if source is None:
        return b""
    end = await end_of_stream(broker, source)
    piece = partial(read, broker, source)
    offset = await find_lines(piece, source.begin, end, lines)
    # A line that a progress bar wrote again and again is long: its end counts.
    offset = max(offset, end - LONGEST_END)
    data = b""
    while offset + len(data) < end:
        more = await read(broker, source, offset + len(data))
        if not more:
            break
        data += more
    return data


async def read(
    broker: Broker, source: OutputSource, offset: int, length: int | None = None
) -> bytes:
    """Read a piece, nothing beyond the attempt's own end."""
    attempt = source.attempt
    if source.is_empty:
        return b""
    try:
        data = await broker.requests.output.read(
            attempt.worker, source.path, offset, length
        )
    except Unreachable:
        raise out_of_reach(broker, attempt) from None
    return data if source.end is None else data[: max(0, source.end - offset)]


async def scan(
    broker: Broker, source: OutputSource, offset: int, wanted: LineScan
) -> ScannedLines:
    """Have the worker look through a part of a stream, as far as it gets."""
    found = await _scan(broker, source, offset, wanted)
    if found is None:
        worker = broker.state.workers[source.attempt.worker]
        raise Refused(
            f"worker `{worker.name}` has an older grass, which cannot count or search"
            " lines",
            "install the same version there",
        )
    return found


async def end_of_stream(broker: Broker, source: OutputSource) -> int:
    """Return where a stream ends now."""
    if source.end is not None:
        return source.end
    found = await _scan(broker, source, source.begin, LineScan(source.begin))
    if found is None:
        return await find_end(partial(read, broker, source), source.begin)
    return max(source.begin, found.size)


async def _scan(
    broker: Broker, source: OutputSource, offset: int, wanted: LineScan
) -> ScannedLines | None:
    attempt = source.attempt
    if source.is_empty:
        return ScannedLines(offset, offset)
    try:
        return await broker.requests.output.scan(
            attempt.worker, source.path, offset, wanted
        )
    except Unreachable:
        raise out_of_reach(broker, attempt) from None


async def pieces(
    broker: Broker, source: OutputSource, offset: int, data: bytes
) -> AsyncIterator[bytes]:
    """Yield the rest of a stream after its first piece."""
    while data:
        offset += len(data)
        yield data
        data = await read(broker, source, offset)


def out_of_reach(broker: Broker, attempt: Attempt) -> GrassError:
    """Return the error for output that cannot be read now."""
    state, job = broker.state, attempt.job
    worker = state.workers.get(attempt.worker)
    if worker is None:
        return NotFound(
            f"the output of job {job} is on a worker that was forgotten",
            f"`grass show {job}` names it; if its pool is behind a submit_prefix, the"
            f" output is on the cluster: {attempt.output}",
        )
    return Unreachable(absence(state, worker), f"the output of job {job} is there")


async def find_end(read: ReadPiece, begin: int) -> int:
    """Return where a file ends that has at least `begin` bytes."""
    within, beyond = begin, begin + PIECE
    while await read(beyond - 1, 1):
        within, beyond = beyond, beyond + 2 * (beyond - begin)
    # Everything below `within` is there, nothing from `beyond` on.
    while beyond - within > PIECE:
        middle = (within + beyond) // 2
        if await read(middle - 1, 1):
            within = middle
        else:
            beyond = middle
    return within + len(await read(within, beyond - within))


async def find_lines(read: ReadPiece, begin: int, end: int, lines: int) -> int:
    """Return where the last lines before `end` begin, not going below `begin`.

    Of a line that is too long only its end counts.
    """
    if lines == 0:
        return end
    # The newline that ends the last line begins no further one.
    place, left = end, lines
    last = await read(end - 1, 1) if end > begin else b""
    if last == b"\n":
        place -= 1
    newline = place
    while place > begin:
        if newline - place >= LONGEST_LINE:
            return place
        start = max(begin, place - PIECE)
        piece = await read(start, place - start)
        found = piece.count(b"\n")
        if found >= left:
            return start + _nth_from_end(piece, left) + 1
        if found:
            newline = start + piece.index(b"\n")
        left -= found
        place = start
    return begin


def _nth_from_end(piece: bytes, number: int) -> int:
    place = len(piece)
    for _ in range(number):
        place = piece.rindex(b"\n", 0, place)
    return place
