"""Coroutine functions: side by side, each by itself, whatever runs them."""

import asyncio
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import grass as grain
from grass.resource import ZERO, Cores, Memory
from grass.tasks.errors import TaskFailed
from tests.tasks.functions import Critical

seen: ContextVar[str] = ContextVar("seen", default="nothing")


def test_functions_that_wait_for_each_other_run_side_by_side(backend: str) -> None:
    count = 100

    async def meet(here: list[int], all_here: anyio.Event) -> int:
        here.append(1)
        if len(here) == count:
            all_here.set()
        await all_here.wait()
        return len(here)

    async def main() -> Any:
        here, all_here = list[int](), anyio.Event()
        async with grain.open_waitgroup() as wg:
            for _ in range(count):
                wg.submit(Memory(1), meet, here, all_here)
        return wg.results

    met = grain.run_combine(main, [], Memory(count), backend=backend)
    assert met == [count] * count


def test_one_that_begins_while_others_wait_is_run(backend: str) -> None:
    async def main() -> None:
        go_on = anyio.Event()

        async def tell() -> None:
            go_on.set()

        async def submit(wg: Any) -> None:
            wg.submit(ZERO, tell)
            await go_on.wait()

        async with grain.open_waitgroup() as wg:
            wg.submit(Cores(1), go_on.wait)
            wg.submit(Cores(1), submit, wg)
            wg.submit(Cores(1), go_on.wait)

    grain.run_combine(main, [], Cores(3), backend=backend)


def test_each_has_a_context_of_its_own(backend: str) -> None:
    async def change(number: int) -> str:
        before = seen.get()
        seen.set(f"{number}")
        if number % 2:
            await anyio.lowlevel.checkpoint()
        return f"{before} {seen.get()} {grain.GVAR.res}"

    async def main() -> Any:
        seen.set("main")
        async with grain.open_waitgroup() as wg:
            for number in range(6):
                wg.submit(Cores(1), change, number)
        return wg.results, seen.get()

    found, after = grain.run_combine(main, [], Cores(1), backend=backend)
    assert found == [f"main {number} CPU([0])" for number in range(6)]
    assert after == "main"


def test_the_loop_has_its_turn_between_functions_that_do_not_wait(backend: str) -> None:
    ran: list[int] = []

    async def run() -> None:
        ran.append(1)

    async def main() -> Any:
        with anyio.CancelScope() as scope:
            async with grain.open_waitgroup() as wg:
                for _ in range(10_000):
                    wg.submit(Cores(1), run)
                while not ran:
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
        return await grain.exec1(Cores(1), count)

    async def count() -> int:
        return len(ran)

    assert 0 < grain.run_combine(main, [], Cores(1), backend=backend) < 1000


def test_a_group_that_fails_begins_none_of_the_others(backend: str) -> None:
    ran: list[int] = []

    async def run(number: int) -> None:
        ran.append(number)
        if number == 3:
            raise Critical

    async def main() -> Any:
        try:
            async with grain.open_waitgroup() as wg:
                for number in range(100):
                    wg.submit(Cores(1), run, number)
        except* Critical:
            pass
        return await grain.exec1(Cores(1), count)

    async def count() -> list[int]:
        return ran

    assert grain.run_combine(main, [], Cores(1), backend=backend) == [0, 1, 2, 3]


@pytest.mark.parametrize("way", ["submit", "start_subtask"])
def test_one_that_raises_cancelled_itself_fails(way: str) -> None:
    async def await_cancelled() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    async def main() -> None:
        async with grain.open_waitgroup() as wg:
            if way == "submit":
                wg.submit(Cores(1), await_cancelled)
            else:
                wg.start_subtask(await_cancelled)

    with pytest.raises(ExceptionGroup) as raised:
        grain.run_combine(main, [], Cores(1), backend="asyncio")
    assert raised.group_contains(
        TaskFailed, match="`.*await_cancelled` raised CancelledError"
    )
