"""Jobs that start, and what is explained of jobs."""

import time
from typing import Any

from tests.support.calling import Api

from grass.link.messages import Start, Started


async def starts(api: Api) -> Start:
    """Have the worker start what it is told to."""
    start = await api.worker.hears(Start)
    assert isinstance(start, Start)
    at = time.time_ns() // 1000
    api.worker.link.send(Started(start.attempt, 42, at, f"/out/{start.job}.log", 0))
    return start


async def explained(api: Api, job: int) -> dict[str, Any]:
    """Read why a job does not start, or how it ended."""
    answer = await api.get(f"/jobs/{job}/explain")
    assert answer.status == 200, answer.document
    document: dict[str, Any] = answer.document
    return document
