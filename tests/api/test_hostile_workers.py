"""A worker with a good token that reports what it likes, over a real WebSocket."""

import contextlib
from pathlib import Path

import pytest
from tests.api.links import (
    REMOTE,
    closed,
    hears,
    hello,
    linked,
    machine_token,
    say,
    welcomed,
)
from tests.api.tcp_api import TcpApi, over_tcp
from websockets.exceptions import ConnectionClosed

from grass.broker.core.workers.message_checks import MOST_REPORTS
from grass.link.messages import Exited, Hello, Report, Start, Started, Welcome
from grass.link.remote_end import REFUSED

CORE = {"gpu": {"0": 10_000}}


def lying(tcp: TcpApi, *attempts: str) -> Hello:
    """Give a hello with made-up attempts of this broker."""
    said = hello()
    cluster = tcp.api.broker.state.cluster
    said.running = [Report(f"{cluster}.{one}", CORE, running=True) for one in attempts]
    return said


async def add_job(tcp: TcpApi, **more: object) -> None:
    job = {"command": "x", "require": "{gpu:1}", **more}
    assert (await tcp.api.post("/jobs", {"jobs": [job]})).status == 200


def test_made_up_reports_move_no_number(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        state = tcp.api.broker.state
        token = await machine_token(tcp)
        async with welcomed(tcp, token) as channel:
            await add_job(tcp, hold=True)
            for number in (1, 1000, 2000, 3000, 10**9, 10**17):
                lie = lying(tcp, f"1.{number}", f"{number + 1}.1")
                lie.exited = [Exited(f"{state.cluster}.1.{number + 1}", 5, 0)]
                lie.at = float(number)
                await say(channel, lie)
                await hears(channel, Welcome)
        assert (state.jobs[1].attempts, state.last_job) == (0, 1)
        async with welcomed(tcp, token) as channel:
            await tcp.api.post("/jobs/release", {"select": ["1"]})
            start = await hears(channel, Start)
            assert isinstance(start, Start)
            assert start.number == 1

    over_tcp(tmp_path, story)


@pytest.mark.parametrize("field", ["running", "exited", "started"])
def test_a_hello_with_too_many_reports_is_refused(tmp_path: Path, field: str) -> None:
    async def story(tcp: TcpApi) -> None:
        cluster = tcp.api.broker.state.cluster
        said = hello()
        name = f"{cluster}.1.1"
        one = {
            "running": Report(name, {}, running=True),
            "exited": Exited(name, 5, 0),
            "started": Started(name, 7, 5),
        }[field]
        setattr(said, field, [one] * (MOST_REPORTS + 1))
        async with linked(tcp, await machine_token(tcp)) as channel:
            with contextlib.suppress(ConnectionClosed):
                await say(channel, said)
            code, reason = await closed(channel)
        assert (code, "too many" in reason) == (REFUSED, True)
        assert REMOTE not in tcp.api.broker.state.workers

    over_tcp(tmp_path, story, patience_s=30)
