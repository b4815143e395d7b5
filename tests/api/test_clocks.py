"""A worker whose clock is wrong, over a real link: nothing goes by that clock."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.api.links import REMOTE, hears, hello, machine_token, say, welcomed
from tests.api.tcp_api import TcpApi, over_tcp

from grass.link.messages import Exited, Forget, Heard, Heartbeat, Start, Started

DAY_S = 86_400
WRONG = [-400 * DAY_S, 3600, 400 * DAY_S]


def wall_us(skew_s: float = 0) -> int:
    return time.time_ns() // 1000 + int(skew_s * 1e6)


async def skew_s(tcp: TcpApi) -> float | None:
    listed = (await tcp.api.get("/workers")).document["workers"]
    (found,) = [one for one in listed if one["id"] == REMOTE]
    known: float | None = found["clock_skew_s"]
    return known


@pytest.mark.parametrize("wrong_s", WRONG)
def test_when_a_job_ended_is_told_by_the_brokers_clock(
    tmp_path: Path, run: Callable[..., None], wrong_s: float
) -> None:
    async def story(tcp: TcpApi) -> None:
        async with welcomed(tcp, await machine_token(tcp)) as channel:
            job = {"command": "x", "require": "{gpu:1}"}
            await tcp.api.post("/jobs", {"jobs": [job]})
            start = await hears(channel, Start)
            assert isinstance(start, Start)
            await say(channel, Started(start.attempt, 7, wall_us(wrong_s)))
            ended = Exited(start.attempt, wall_us(wrong_s), 0, ran_s=7200.5)
            await say(channel, ended)
            await hears(channel, Forget)
        told: dict[str, Any] = (await tcp.api.get("/jobs/1")).document
        assert told["ran_s"] == told["attempts"][0]["ran_s"] == 7200.5
        dry = {"older_s": 60.0, "dry_run": True}
        assert (await tcp.api.post("/jobs/prune", dry)).document["jobs"] == 0
        dry = {"older_s": 0.0, "dry_run": True}
        assert (await tcp.api.post("/jobs/prune", dry)).document["jobs"] == 1

    over_tcp(tmp_path, story, run)


def test_a_wrong_clock_is_told_of(tmp_path: Path, run: Callable[..., None]) -> None:
    async def story(tcp: TcpApi) -> None:
        greeting = replace(hello(), wall_at=wall_us(-7200))
        async with welcomed(tcp, await machine_token(tcp), greeting) as channel:
            assert round(await skew_s(tcp) or 0, -1) == -7200
            for wrong_s in (50, 90):
                await say(channel, Heartbeat(1.0, wall_us(wrong_s)))
                await hears(channel, Heard)
                assert (await skew_s(tcp) is None) == (wrong_s < 60)

    over_tcp(tmp_path, story, run)


def test_a_worker_that_tells_no_time_has_no_wrong_clock(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        async with welcomed(tcp, await machine_token(tcp)) as channel:
            await say(channel, Heartbeat(1.0))
            await hears(channel, Heard)
            assert await skew_s(tcp) is None

    over_tcp(tmp_path, story, run)
