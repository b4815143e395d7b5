"""Asking workers for their devices: late, missing and hostile answers."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from grass.broker.shell import device_requests
from grass.broker.shell.device_requests import MOST_GPUS, DeviceRequests
from grass.errors import GrassError, ProtocolError, TimedOut, Unreachable
from grass.link.messages import Devices, ReadDevices
from grass.model.usage.gpu_use import GpuUse, GpuUser


class Sent(list[Any]):
    """A link that keeps what is sent."""

    send = list.append


def asked(then: Callable[[DeviceRequests, ReadDevices], None]) -> Any:
    """Ask one worker, let it do something, and return what the caller gets."""

    async def story() -> Any:
        link: Any = Sent()
        requests = DeviceRequests(lambda _worker: link)
        reading = asyncio.create_task(requests.read("w"))
        await asyncio.sleep(0)
        then(requests, link[0])
        return await reading

    return asyncio.run(story())


def test_an_answer_is_passed_on() -> None:
    gpus = [GpuUse("0", "card", memory=8)]
    assert asked(lambda it, ask: it.received("w", Devices(ask.number, gpus))) == gpus


@pytest.mark.parametrize(
    ("then", "error"),
    [
        (lambda it, _ask: it.gone("w"), Unreachable),
        (lambda it, ask: it.received("x", Devices(ask.number)), TimedOut),
        (lambda it, ask: it.received("w", Devices(ask.number + 1)), TimedOut),
        (
            lambda it, ask: it.received(
                "w", Devices(ask.number, [GpuUse("0", used=-1)])
            ),
            ProtocolError,
        ),
        (
            lambda it, ask: it.received(
                "w", Devices(ask.number, [GpuUse("0", power_w=float("nan"))])
            ),
            ProtocolError,
        ),
    ],
)
def test_what_is_no_answer_is_an_error(
    then: Any, error: type[GrassError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_requests, "PATIENCE_S", 0.05)
    with pytest.raises(error):
        asked(then)


def test_of_an_endless_answer_only_the_beginning_is_kept() -> None:
    user = GpuUser(1, command="x" * 5000)
    gpus = [GpuUse(str(n), name="y" * 5000, users=[user]) for n in range(MOST_GPUS + 5)]
    kept = asked(lambda it, ask: it.received("w", Devices(ask.number, gpus)))
    assert len(kept) == MOST_GPUS
    assert len(kept[0].name) == len(kept[0].users[0].command) == 256


def test_callers_at_the_same_time_share_one_request() -> None:
    async def story() -> None:
        link: Any = Sent()
        requests = DeviceRequests(lambda _worker: link)
        callers = [asyncio.create_task(requests.read("w")) for _ in range(3)]
        await asyncio.sleep(0)
        assert len(link) == 1
        requests.received("w", Devices(link[0].number, [GpuUse("0")]))
        for caller in callers:
            assert await caller == [GpuUse("0")]

    asyncio.run(story())
