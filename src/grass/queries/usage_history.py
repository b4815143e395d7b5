"""The history of what an attempt or a GPU used, read from its worker like output."""

import msgspec

from grass.broker.shell.service import Broker
from grass.errors import GrassError, NotFound, Unreachable
from grass.model.jobs.job import Attempt
from grass.model.times import rfc3339
from grass.model.usage.attempt_usage import UsagePoint, usage_path
from grass.model.worker import Worker
from grass.queries.documents import JsonObject
from grass.queries.output.output_sources import chosen, out_of_reach
from grass.store.interface import JobDetails

LARGEST = 16 * 2**20
"""In bytes: many times what a history comes to; a worker may send anything."""

_decode = msgspec.json.Decoder(UsagePoint).decode


async def usage_history(
    broker: Broker, details: JobDetails, which: int | None
) -> JsonObject:
    """Return the history of one attempt, the last one unless another is named."""
    attempt = chosen(broker, details, which)
    path = attempt.usage or usage_path(attempt.output)
    data = b"" if path is None else await _read(broker, attempt, path)
    points = _parsed(data)
    if not points:
        raise _nothing(attempt)
    return {
        "job": attempt.job,
        "attempt": attempt.number,
        "started_at": rfc3339(attempt.started_at),
        "points": [_point(attempt.started_at, one) for one in points],
    }


class HistoryEnd:
    """The end of an attempt's history, as it grows."""

    def __init__(self, broker: Broker, attempt: Attempt) -> None:
        self._broker = broker
        self._attempt = attempt
        self._read = 0
        self._last_s = -1.0

    async def more(self) -> list[JsonObject]:
        """Return the points that were added since the last call."""
        path = self._attempt.usage or usage_path(self._attempt.output)
        data = b"" if path is None else await self._new_bytes(path)
        points = [one for one in _parsed(data) if one.at_s > self._last_s]
        if points:
            self._last_s = points[-1].at_s
        return [_point(self._attempt.started_at, one) for one in points]

    async def _new_bytes(self, path: str) -> bytes:
        """Read the lines that were added, or all where the file is another one."""
        if self._read:
            # The end of the last line is read again: it is elsewhere in a file that
            # was thinned.
            data = await _piece(
                self._broker, self._attempt.worker, path, self._read - 1
            )
            if data.startswith(b"\n"):
                added = data[1 : data.rfind(b"\n") + 1]
                self._read += len(added)
                return added
        data = await _whole(self._broker, self._attempt.worker, path)
        self._read = data.rfind(b"\n") + 1
        return data[: self._read]


async def device_history(broker: Broker, worker: Worker, unit: str) -> JsonObject:
    """Return the history of one GPU of a worker."""
    path = (await broker.requests.usage.device_files(worker.id)).get(unit)
    points = [] if path is None else _parsed(await _whole(broker, worker.id, path))
    if not points:
        raise NotFound(f"nothing of gpu {unit} of `{worker.name}` was measured")
    return {
        "worker": worker.name,
        "unit": unit,
        "points": [_point(0, one) for one in points],
    }


async def _read(broker: Broker, attempt: Attempt, path: str) -> bytes:
    try:
        return await _whole(broker, attempt.worker, path)
    except Unreachable:
        raise out_of_reach(broker, attempt) from None


async def _piece(broker: Broker, worker: str, path: str, offset: int) -> bytes:
    try:
        return await broker.requests.output.read(worker, path, offset)
    except NotFound:
        return b""


async def _whole(broker: Broker, worker: str, path: str) -> bytes:
    """Read a file as output is read; nothing where there is none."""
    data = b""
    try:
        while len(data) < LARGEST:
            more = await broker.requests.output.read(worker, path, len(data))
            if not more:
                break
            data += more
    except NotFound:
        return b""
    return data


def _parsed(data: bytes) -> list[UsagePoint]:
    """Return the points of a file; a line that was not written whole is left out."""
    points: list[UsagePoint] = []
    for line in data.split(b"\n"):
        try:
            point = _decode(line)
        except ValueError:
            continue
        # The file may have been thinned, and be another one, between two pieces.
        if not points or point.at_s > points[-1].at_s:
            points.append(point)
    return points


def _point(began_at: int, point: UsagePoint) -> JsonObject:
    return {
        "at": rfc3339(began_at + int(point.at_s * 1e6)),
        "elapsed_s": point.at_s,
        "span_s": point.span_s,
        "memory": point.memory,
        "cpu": point.cpu,
        "gpus": {
            unit: {"memory": memory, "utilization": utilization}
            for unit, (memory, utilization) in point.gpus.items()
        },
    }


def _nothing(attempt: Attempt) -> GrassError:
    if attempt.finished_at is None:
        return NotFound(f"nothing of job {attempt.job} was measured yet")
    took = "" if attempt.ran_s is None else f": it ran for {attempt.ran_s:.2g} s"
    return NotFound(f"nothing of job {attempt.job} was measured{took}")
