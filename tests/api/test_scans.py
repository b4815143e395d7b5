"""Reads that look at all jobs: few at a time, and none for somebody who has left."""

import asyncio
import threading
from pathlib import Path

import pytest
from tests.support.calling import Api, Call, play
from tests.support.patience import PATIENCE_S

from grass.broker.shell.readers import SCANS_AT_ONCE

PATHS = (
    "/jobs?select=name~x",
    "/jobs?select=name~x&order=name",
    "/jobs?select=name~x&order=display",
    "/timeline",
)


@pytest.mark.parametrize("path", PATHS)
def test_who_has_left_waits_for_no_scan(tmp_path: Path, path: str) -> None:
    async def story(api: Api) -> None:
        scans, held = api.broker._readers._scans, threading.Event()
        token = await api.new_token("read")
        slow = [
            api.broker.scan(lambda _: held.wait(PATIENCE_S))
            for _ in range(SCANS_AT_ONCE)
        ]
        running = [asyncio.ensure_future(one) for one in slow]
        call = Call(asyncio.Event(), asyncio.Event())
        asking = asyncio.ensure_future(api.remote("GET", path, {}, token, call))
        try:
            while not scans._waiters:
                assert not asking.done(), asking.result()
                await asyncio.sleep(0)
            call.left.set()
            answer = await asyncio.wait_for(asking, PATIENCE_S)
            assert (answer.status, held.is_set()) == (499, False)
        finally:
            held.set()
            await asyncio.gather(*running)

    play(tmp_path, story)
