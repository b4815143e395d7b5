"""Threads that read: a slow query holds up nobody, and idle ones leave."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.support.patience import until

from grass.broker.shell import readers
from grass.broker.shell.readers import MOST, SCANS_AT_ONCE, Readers
from grass.errors import StorageError
from grass.store.interface import JobFilter, Store
from grass.store.sqlite.sqlite_store import SqliteStore


def play(folder: Path, story: Callable[[Readers], Coroutine[Any, Any, None]]) -> None:
    store = SqliteStore(folder / "grass.db")

    async def whole() -> None:
        pool = Readers(store)
        try:
            async with asyncio.timeout(60):
                await story(pool)
        finally:
            pool.stop()

    asyncio.run(whole())
    store.close()


def threads(pool: Readers) -> int:
    return len(pool._threads)


def last_event(store: Store) -> int:
    return store.last_event()


class Slow:
    """A query that lasts until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self._go = threading.Event()

    def __call__(self, store: Store) -> int:
        store.jobs(JobFilter(), 1)
        self.begun.set()
        assert self._go.wait(60)
        return threading.get_ident()

    def let_go(self) -> None:
        self._go.set()


async def begun(slow: Slow) -> None:
    assert await asyncio.to_thread(slow.begun.wait, 60)


def test_a_slow_query_holds_up_no_other(tmp_path: Path) -> None:
    async def story(pool: Readers) -> None:
        slow = [Slow() for _ in range(MOST - 1)]
        running = [asyncio.create_task(pool.read(one)) for one in slow]
        for one in slow:
            await begun(one)
        assert await pool.read(last_event) == 0
        for one in slow:
            one.let_go()
        assert len(set(await asyncio.gather(*running))) == MOST - 1

    play(tmp_path, story)


def test_more_queries_than_threads_wait_their_turn(tmp_path: Path) -> None:
    async def story(pool: Readers) -> None:
        answers = await asyncio.gather(*(pool.read(last_event) for _ in range(50)))
        assert answers == [0] * 50
        assert threads(pool) <= MOST

    play(tmp_path, story)


def test_scans_leave_threads_for_others(tmp_path: Path) -> None:
    async def story(pool: Readers) -> None:
        slow = [Slow() for _ in range(MOST + 1)]
        running = [asyncio.create_task(pool.scan(one)) for one in slow]
        for one in slow[:SCANS_AT_ONCE]:
            await begun(one)
        assert await pool.read(last_event) == 0
        assert not any(one.begun.is_set() for one in slow[SCANS_AT_ONCE:])
        for one in slow:
            one.let_go()
        await asyncio.gather(*running)

    play(tmp_path, story)


def test_threads_that_nobody_needs_leave_with_their_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "IDLE_S", 0.01)

    async def story(pool: Readers) -> None:
        slow = Slow()
        running = asyncio.create_task(pool.read(slow))
        await begun(slow)
        await pool.read(last_event)
        slow.let_go()
        await running
        await asyncio.to_thread(
            until, lambda: threads(pool) == 1, "a thread besides the first one stayed"
        )
        assert await pool.read(last_event) == 0

    play(tmp_path, story)


def test_an_error_reaches_its_caller_and_no_other(tmp_path: Path) -> None:
    def fails(_store: Store) -> None:
        raise StorageError("no")

    async def story(pool: Readers) -> None:
        with pytest.raises(StorageError):
            await pool.read(fails)
        assert await pool.read(last_event) == 0

    play(tmp_path, story)


def test_stopping_answers_what_waits(tmp_path: Path) -> None:
    async def story(pool: Readers) -> None:
        slow = Slow()
        running = [asyncio.create_task(pool.read(slow))]
        await begun(slow)
        running.append(asyncio.create_task(pool.read(last_event)))
        await asyncio.sleep(0)
        slow.let_go()
        await asyncio.to_thread(pool.stop)
        assert len(await asyncio.gather(*running)) == 2
        assert threads(pool) == 0

    play(tmp_path, story)
