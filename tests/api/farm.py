"""A worker `farm` on another machine, and jobs of it, beside the broker's own."""

import asyncio
from typing import Any

from tests.support.building import BOOT, units
from tests.support.calling import Answer, Api
from tests.support.enrolled import bind_token
from tests.support.far_end import FarEnd

from grass.link.channel import LinkEnd, pair
from grass.link.messages import Hello, Start, Started, ToBroker, ToWorker, Welcome

SINCE = 1_754_343_612_345_678
"""When a worker was last heard of that `runs_out_of_sight` has cut off."""


async def joined(api: Api, **said: Any) -> FarEnd:
    """Connect a worker `farm` from another machine."""
    ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
    bind_token(api.broker.state, "f1")
    api.broker.serve(ends[0], worker="f1", address="10.0.0.7")
    worker = FarEnd(ends[1])
    worker.link.send(Hello("f1", "farm", BOOT, units("{cpu:4}"), [], [], **said))
    await worker.hears(Welcome)
    return worker


async def farm(api: Api) -> dict[str, Any]:
    """Read the worker as it is listed."""
    listed = (await api.get("/workers")).document["workers"]
    (found,) = [one for one in listed if one["name"] == "farm"]
    return dict(found)


async def enqueue(api: Api, **fields: Any) -> dict[str, Any]:
    """Enqueue one job and read it back."""
    answer = await api.post("/jobs", {"jobs": [{"command": ["x"], **fields}]})
    assert answer.status == 200, answer.document
    document: dict[str, Any] = (await api.get("/jobs/last")).document
    return document


async def cut_off(api: Api, worker: FarEnd) -> None:
    """Lose a worker's link."""
    worker.link.close()
    # The broker's side is told on the next turn, and done when a call is answered.
    await asyncio.sleep(0)
    await api.post("/resume", {})
    assert not api.broker.state.workers["f1"].connected


async def started(worker: FarEnd) -> Start:
    """Have a worker start what it is told to."""
    start = await worker.hears(Start)
    assert isinstance(start, Start)
    path = f"/out/{start.number}.log"
    worker.link.send(Started(start.attempt, 42, 1_000_000, path, 0))
    return start


async def runs_out_of_sight(api: Api, **said: Any) -> None:
    """Have job 1 run on a worker that is then cut off."""
    worker = await joined(api, **said)
    await enqueue(api, worker="farm")
    await started(worker)
    while api.broker.state.attempts[1].output is None:
        await api.broker.next_commit()
    await cut_off(api, worker)
    api.broker.state.workers["f1"].heard_at = SINCE


def told(answer: Answer) -> tuple[int, str, str]:
    """Give what a refusal says."""
    problem = answer.document
    return answer.status, problem["code"], problem["detail"]
