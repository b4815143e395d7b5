"""Waking up at a time of the wall clock, with real timers."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.broker.serving import play
from tests.support.far_end import FarEnd
from tests.support.patience import PATIENCE_S

from grass.broker.core.calls import Enqueue, HoldJobs, NewJob
from grass.broker.shell.service import Broker
from grass.broker.shell.wall_clock import WallClock
from grass.link.messages import Start
from grass.model.jobs.dependencies import runs_of
from grass.model.jobs.spec import JobPatch

SOON_US = 5_000_000


def now_us() -> int:
    return time.time_ns() // 1000


class Bell:
    """Counts how often it rang, and lets a test wait for that."""

    def __init__(self) -> None:
        self.rang: list[int] = []
        self._event = asyncio.Event()
        self.clock = WallClock(self._ring)

    def _ring(self) -> None:
        self.rang.append(now_us())
        self._event.set()

    async def heard(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            await self._event.wait()
        self._event.clear()
        return self.rang[-1]


def tell(story: Callable[[Bell], Awaitable[None]]) -> None:
    async def run() -> None:
        bell = Bell()
        try:
            await story(bell)
        finally:
            bell.clock.close()

    asyncio.run(run())


def timers() -> int:
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(
        "timerfd" in os.readlink(each) for each in links if os.path.lexists(each)
    )


def test_it_rings_when_the_time_has_come_and_not_before() -> None:
    async def story(bell: Bell) -> None:
        at = now_us() + 50_000
        bell.clock.set(at)
        assert await bell.heard() >= at
        assert len(bell.rang) == 1

    tell(story)


@pytest.mark.parametrize("at", [1, 0, -5])
def test_a_time_that_has_passed_rings_at_once(at: int) -> None:
    async def story(bell: Bell) -> None:
        before = now_us()
        bell.clock.set(at)
        assert await bell.heard() < before + SOON_US
        assert len(bell.rang) == 1

    tell(story)


def test_a_later_time_replaces_an_earlier_one() -> None:
    async def story(bell: Bell) -> None:
        bell.clock.set(now_us() + 10_000)
        later = now_us() + 100_000
        bell.clock.set(later)
        assert await bell.heard() >= later
        sooner = now_us() + 10_000
        bell.clock.set(now_us() + 3600 * 10**6)
        bell.clock.set(sooner)
        assert await bell.heard() >= sooner
        assert len(bell.rang) == 2

    tell(story)


def test_it_can_be_told_to_keep_still() -> None:
    async def story(bell: Bell) -> None:
        bell.clock.set(now_us() + 20_000)
        bell.clock.set(None)
        other = Bell()
        other.clock.set(now_us() + 60_000)
        await other.heard()
        other.clock.close()
        assert bell.rang == []

    tell(story)


def test_the_same_time_may_be_asked_for_again_after_it_rang() -> None:
    async def story(bell: Bell) -> None:
        at = now_us() + 1000
        for _ in range(2):
            bell.clock.set(at)
            assert await bell.heard() >= at
        assert len(bell.rang) == 2

    tell(story)


def test_no_timer_is_made_before_one_is_needed_and_none_is_left() -> None:
    async def story(bell: Bell) -> None:
        before = timers()
        bell.clock.set(None)
        assert timers() == before
        bell.clock.set(now_us() + 3600 * 10**6)
        assert timers() == before + 1
        bell.clock.close()
        assert timers() == before

    tell(story)


def new_job(**settings: object) -> Enqueue:
    patch = JobPatch(**settings)  # type: ignore[arg-type]
    named = runs_of(patch.after or ())
    return Enqueue("uid:1", [NewJob(("true",), patch)], named=named)


def test_a_job_starts_at_its_time(tmp_path: Path) -> None:
    async def story(broker: Broker, worker: FarEnd) -> None:
        at = now_us() + 100_000
        await broker.call(new_job(begin_at=at))
        await worker.hears(Start)
        assert now_us() >= at

    play(tmp_path, story)


def test_a_time_that_starts_nothing_does_not_keep_the_next_from_coming(
    tmp_path: Path,
) -> None:
    async def story(broker: Broker, worker: FarEnd) -> None:
        soon = now_us() + 100_000
        held = await broker.call(new_job(begin_at=soon))
        late = await broker.call(new_job(begin_at=soon + 100_000))
        await broker.call(HoldJobs("uid:1", [held.first]))
        start = await worker.hears(Start)
        assert isinstance(start, Start)
        assert start.job == late.first

    play(tmp_path, story)
