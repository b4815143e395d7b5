"""The agent's connection to a keeper that is lost, or that it does not understand."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from grass.devices.gpu_monitor import GpuMonitor
from grass.devices.readings import GpuUnit
from grass.keeper.protocol import AbleEntry, Entry
from grass.link.channel import Link
from grass.link.messages import Hello
from grass.model.amount_text import WHOLE
from grass.worker.shell import agent, keeper_link
from grass.worker.shell.agent import WorkerAgent
from grass.worker.shell.keeper_link import KeeperLink
from tests.support.building import typed

from .lab import ready


class SilentLink:
    """A link to a broker that says nothing."""

    def listen(self, _received: Any, _ended: Any) -> None:
        pass

    def send(self, _message: Any) -> None:
        pass


def test_a_line_that_is_not_understood_is_logged_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    received: list[Entry] = []
    link = KeeperLink(received.extend, lambda: None)
    with caplog.at_level(logging.WARNING):
        link.data_received(b'{"e":"exited","id":7}\nnot JSON\n{"e":"able"}\n')
    assert typed(received) == typed([AbleEntry()])
    [first, second] = [cast("Any", record.msg) for record in caplog.records]
    assert first.name == second.name == "keeper.bad_entry"
    assert "7 is not a string" in str(first.fields["error"])
    assert "not JSON" in str(second.fields["error"])


def test_a_keeper_that_is_lost_at_once_is_connected_after_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connected: list[float] = []
    channels: list[socket.socket] = []

    def reach(enough: Callable[[], object]) -> socket.socket:
        connected.append(time.monotonic())
        if len(connected) == 4:
            enough()
        ours, theirs = socket.socketpair()
        theirs.close()
        channels.append(ours)
        return ours

    async def story() -> None:
        loop, enough = asyncio.get_running_loop(), asyncio.Event()
        done = partial(loop.call_soon_threadsafe, enough.set)
        monkeypatch.setattr(keeper_link, "reach_keeper", lambda *_where: reach(done))
        link = cast("Link[Any, Any]", SilentLink())
        worker = WorkerAgent(ready().core, link, str(tmp_path), str(tmp_path))
        running = asyncio.create_task(worker.run())
        await enough.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(story())
    # The agent that is cancelled never takes over the last one.
    for channel in channels:
        channel.close()
    pauses = [later - earlier for earlier, later in pairwise(connected)]
    assert all(
        pause >= least for pause, least in zip(pauses, (0.1, 0.2, 0.4), strict=True)
    )


@pytest.mark.parametrize(
    ("allotted", "cores"), [("", len(os.sched_getaffinity(0))), ("3,,0", 3)]
)
def test_gpus_that_have_come_are_told_to_the_broker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, allotted: str, cores: int
) -> None:
    """A worker that an engine has started tells of no more than it was given."""

    class Monitor(GpuMonitor):
        """A monitor that has found what it is told."""

        def units(self) -> tuple[GpuUnit, ...]:
            return (GpuUnit("0", "H200", "GPU-0", 80 << 30, "GPU-0"),)

    told: list[Any] = []

    async def story() -> None:
        never = asyncio.Event()

        async def no_keeper(*_where: Any) -> None:
            await never.wait()

        monkeypatch.setattr(agent, "open_keeper", no_keeper)
        link, monitor = SilentLink(), Monitor()
        monkeypatch.setattr(link, "send", told.append)
        core = ready().core
        core.around = core.around._replace(allotted=allotted)
        worker = WorkerAgent(
            core,
            cast("Link[Any, Any]", link),
            str(tmp_path),
            str(tmp_path),
            monitor=monitor,
        )
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0)
        monitor.on_units()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(story())
    [*_, hello] = [one for one in told if isinstance(one, Hello)]
    assert hello.found["gpu"]["0"].details["name"] == "H200"
    assert hello.found["vram"]["0"].amount == 80 * WHOLE
    assert len(hello.found["cpu"]) == cores
