"""Stopping a daemon with its jobs: only those are waited for who can still be heard."""

import asyncio
from pathlib import Path

from tests.api.farm import cut_off, enqueue, joined, started
from tests.support.calling import Api, play

from grass.link.messages import Exited, Start, Started, Stop


async def stopped(api: Api) -> list[int]:
    """Have the daemon stop with its jobs; give which it ended."""
    answer = await api.post("/daemon/stop", {"jobs": True})
    await api.stopped.wait()
    return list(answer.document["jobs"])


def test_a_worker_that_goes_away_meanwhile_is_not_waited_for(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        away = await joined(api)
        await enqueue(api, worker="farm")
        await started(away)
        await enqueue(api, worker="desk")
        here = await api.worker.hears(Start)
        assert isinstance(here, Start)
        api.worker.link.send(Started(here.attempt, 43, 1_000_000, "/out/2.log", 0))
        stopping = asyncio.ensure_future(stopped(api))
        await away.hears(Stop)
        await cut_off(api, away)
        api.worker.link.send(Exited(here.attempt, 2_000_000, signal=15))
        assert await stopping == [2]

    play(tmp_path, story)
