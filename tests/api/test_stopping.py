"""Stopping a daemon with its jobs: only those are waited for who can still be heard."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from logging import ERROR, makeLogRecord
from pathlib import Path

import pytest
import uvicorn
from tests.api.farm import cut_off, enqueue, joined, started
from tests.support.calling import Api, play

from grass.api.server.cancellation import NOT_WAITED_FOR, is_unexpected, until_stop
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


def test_a_call_that_a_stop_cuts_off_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its caller repeats it at the next daemon, where that may be done."""

    async def story(api: Api) -> None:
        async def hang(_: object) -> None:
            hangs.set()
            await asyncio.Event().wait()

        hangs = asyncio.Event()
        monkeypatch.setattr(api.broker, "call", hang)
        job = {"command": ["true"], "project": "p"}
        adding = asyncio.ensure_future(api.post("/jobs", {"jobs": [job]}))
        await hangs.wait()
        # The database does not answer; the server gives up, as at a stop.
        api.app.state.api.closing.set()
        adding.cancel()
        cut_off = await adding
        assert (cut_off.status, cut_off.document["code"]) == (503, "stopping")

    play(tmp_path, story)


def test_who_takes_no_answer_at_a_stop_is_no_error_of_the_daemon() -> None:
    assert NOT_WAITED_FOR in inspect.getsource(uvicorn.Server.shutdown)
    said = {"msg": NOT_WAITED_FOR, "args": (0,), "levelno": ERROR}
    assert not is_unexpected(makeLogRecord(said))
    other = said | {"msg": "something else"}
    assert is_unexpected(makeLogRecord(other))
    cancelled = asyncio.CancelledError()
    info = {"exc_info": (type(cancelled), cancelled, None)}
    assert not is_unexpected(makeLogRecord(other | info))


def test_a_stream_whose_request_is_cancelled_leaves_no_task() -> None:
    async def story() -> None:
        began = asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            began.set()
            await asyncio.Event().wait()
            yield b""

        async def read() -> None:
            async for _ in until_stop(asyncio.Event(), pieces()):
                pass

        reading = asyncio.ensure_future(read())
        await began.wait()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())
