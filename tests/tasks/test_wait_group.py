"""Wait-groups, `exec1` and `run_combine`, under both event loops."""

import asyncio
import gc
import re
import sys
import tracemalloc
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trio

import grass as grain
from grass.errors import NeverFits
from grass.resource import ZERO, Cores, Memory, Node, WTime
from tests.tasks.functions import Critical, Temporary, add, held, pid


async def double(number: int) -> int:
    await anyio.lowlevel.checkpoint()
    return 2 * number


async def what_is_held() -> str:
    return repr(grain.GVAR.res)


async def fail() -> None:
    await anyio.lowlevel.checkpoint()
    raise Critical


def test_the_seeds_program_runs(backend: str) -> None:
    seen: list[Any] = []

    async def subtask(word: str) -> str:
        return word + str(await grain.exec1(grain.Cores(1), double, 2))

    async def main() -> None:
        async with grain.open_waitgroup() as wg:
            wg.submit(grain.Cores(1), add, 3, second=4)
            wg.submit(grain.Cores(2), double, 5)
            wg.start_subtask(subtask, "x")
        seen.append(wg.results)
        seen.append(await grain.exec1(grain.Cores(3) & grain.Memory(2), add, 5))

    grain.run_combine(main, [], grain.Node(N=16, M=28), backend=backend)
    assert seen == [[7, 10, "x4"], 5]


def test_several_mains_run_side_by_side_and_return_what_they_return(
    backend: str,
) -> None:
    both = [partial(double, 1), partial(double, 2)]
    assert grain.run_combine(both, [], Node(1, 1), backend=backend) == [2, 4]


def test_the_machine_is_taken_where_nothing_is_named() -> None:
    async def main() -> Any:
        return await grain.exec1(grain.Cores(1), held)

    assert re.fullmatch(r"CPU\(\[\d+\]\)", grain.run_combine(main))


def test_trio_is_the_loop_of_a_program_that_has_loaded_it() -> None:
    async def main() -> bool:
        return trio.lowlevel.in_trio_run()

    assert grain.run_combine(main) is True
    assert grain.run_combine(main, backend="asyncio") is False


def test_it_can_be_awaited_in_a_program_that_runs_a_loop() -> None:
    async def main() -> Any:
        return await grain.exec1(Cores(1), double, 4)

    async def program() -> Any:
        return await grain.run_combine(main, [], Node(1, 1))

    assert asyncio.run(program()) == 8
    assert trio.run(program) == 8


def test_what_was_not_awaited_says_so_and_is_still_a_coroutine() -> None:
    async def main() -> Any:
        return await grain.exec1(Cores(1), double, 4)

    async def program() -> Any:
        begun = grain.run_combine(main, [], Node(1, 1))
        assert repr(begun) == "<nothing has run yet: write `await run_combine(...)`>"
        grain.run_combine(main, [], Node(1, 1)).close()
        return await asyncio.create_task(begun)

    assert asyncio.run(program()) == 8


def test_results_are_in_the_order_of_submission(backend: str) -> None:
    done: list[int] = []

    async def in_reverse(number: int, events: list[anyio.Event]) -> int:
        if number + 1 < len(events):
            await events[number + 1].wait()
        done.append(number)
        events[number].set()
        return number

    async def main() -> Any:
        events = [anyio.Event() for _ in range(5)]
        async with grain.open_waitgroup() as wg:
            for number in range(5):
                wg.submit(Memory(1), in_reverse, number, events)
        return wg.results

    assert grain.run_combine(main, [], Memory(5), backend=backend) == list(range(5))
    assert done == [4, 3, 2, 1, 0]


def test_no_more_run_at_a_time_than_there_is_room_for(backend: str) -> None:
    running, most = 0, 0

    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1

    async def main() -> None:
        async with grain.open_waitgroup() as wg:
            for _ in range(20):
                wg.submit(Memory(2), count)

    grain.run_combine(main, [], Memory(7), backend=backend)
    assert most == 3


def test_a_task_sees_what_it_holds_and_its_neighbour_does_not(backend: str) -> None:
    async def main() -> Any:
        async with grain.open_waitgroup() as wg:
            wg.submit(Cores(2) & Memory(1), what_is_held)
            wg.submit(Cores(1), what_is_held)
            wg.submit(ZERO, what_is_held)
            wg.submit(Cores(3), held)
        return wg.results

    assert grain.run_combine(main, [], Node(3, 4), backend=backend) == [
        "CPU([0, 1]) & Memory(1)",
        "CPU([2])",
        "ZERO",
        "CPU([0, 1, 2])",
    ]


def test_outside_of_a_task_nothing_is_held(backend: str) -> None:
    async def main() -> Any:
        await grain.exec1(Cores(1), what_is_held)
        with pytest.raises(LookupError, match="no task runs here"):
            _ = grain.GVAR.res
        return grain.GVAR.instance

    assert grain.run_combine(main, [], Cores(1), backend=backend) == "N/A"


def test_one_failure_cancels_the_siblings_and_all_leave_as_a_group(
    backend: str,
) -> None:
    cancelled: list[str] = []

    async def sleep() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.append("sleep")

    async def main() -> Any:
        wg = grain.open_waitgroup()
        try:
            async with wg:
                wg.submit(Cores(1), sleep)
                wg.submit(Cores(1), fail)
                wg.submit(Cores(2), sleep)
        except* Critical:
            pass
        assert wg.results == []
        # What the cancelled ones held is free again.
        return await grain.exec1(Cores(2), double, 1)

    assert grain.run_combine(main, [], Cores(2), backend=backend) == 2
    assert cancelled == ["sleep"]


def test_exec1_and_run_combine_raise_the_functions_own(backend: str) -> None:
    async def main() -> None:
        with pytest.raises(Critical):
            await grain.exec1(Cores(1), fail)
        await fail()

    with pytest.raises(Critical):
        grain.run_combine(main, [], Cores(1), backend=backend)


def test_a_failure_of_one_main_ends_the_others(backend: str) -> None:
    async def other() -> None:
        async with grain.open_waitgroup() as wg:
            wg.submit(ZERO, anyio.sleep_forever)

    with pytest.raises(ExceptionGroup) as raised:
        grain.run_combine([other, fail, other], [], ZERO, backend=backend)
    assert raised.group_contains(Critical)


def test_a_block_that_fails_runs_nothing_that_waits(backend: str) -> None:
    ran: list[int] = []

    async def run() -> None:
        ran.append(1)

    async def main() -> None:
        async with grain.open_waitgroup() as wg:
            wg.submit(Cores(1), run)
            raise Critical

    with pytest.raises(ExceptionGroup):
        grain.run_combine(main, [], Cores(1), backend=backend)
    assert ran == []


def test_a_timeout_around_a_group_ends_its_tasks(backend: str) -> None:
    async def main() -> Any:
        with anyio.CancelScope() as scope:
            async with grain.open_waitgroup() as wg:
                wg.submit(Cores(1), anyio.sleep_forever)
                wg.submit(Cores(1), anyio.sleep_forever)
                await anyio.lowlevel.checkpoint()
                scope.cancel()
        return await grain.exec1(Cores(1), double, 3)

    assert grain.run_combine(main, [], Cores(1), backend=backend) == 6


def test_groups_nest(backend: str) -> None:
    async def tree(depth: int) -> Any:
        async with grain.open_waitgroup() as wg:
            wg.submit(Cores(1), double, depth)
            for _ in range(2 if depth else 0):
                wg.start_subtask(tree, depth - 1)
        return sum(wg.results)

    assert grain.run_combine(partial(tree, 3), [], Cores(2), backend=backend) == 22


def test_a_time_limit_ends_a_task(backend: str) -> None:
    async def main() -> None:
        await grain.exec1(Cores(1) & WTime(T=0.05), anyio.sleep_forever)

    with pytest.raises(TimeoutError, match=r"`sleep_forever` took longer than 0\.05 s"):
        grain.run_combine(main, [], Cores(1), backend=backend)


def test_a_task_that_needs_more_time_than_is_left_is_refused(backend: str) -> None:
    async def main() -> None:
        await grain.exec1(WTime(T="1:00:00"), double, 1)

    rpw = Cores(1) & WTime(T=60, countdown=True)
    with pytest.raises(TimeoutError, match=r"`double` needs .*01:00:00.* is left"):
        grain.run_combine(main, [], rpw, backend=backend)


def test_a_task_that_waited_until_there_is_no_time_left_is_not_begun(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("time.time", lambda: now)

    async def take_time() -> None:
        nonlocal now
        now += 50

    async def main() -> None:
        async with grain.open_waitgroup() as wg:
            wg.submit(Cores(1) & WTime(T=60, softT=30), take_time)
            wg.submit(Cores(1) & WTime(T=60, softT=30), double, 1)

    rpw = Cores(1) & WTime(T=60, countdown=True)
    with pytest.raises(ExceptionGroup) as raised:
        grain.run_combine(main, [], rpw, backend=backend)
    assert raised.group_contains(TimeoutError, match=r"`double` needs .* is left")


def test_a_group_of_tasks_has_the_time_that_its_first_ones_took(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = WTime(group=f"of {backend}")
    now = 0.0

    async def take_time() -> None:
        nonlocal now
        now += 20

    async def main() -> None:
        for _ in range(8):
            await grain.exec1(Cores(1) & limit, take_time)

    with monkeypatch.context() as patched:
        patched.setattr("grass.tasks.session.time.monotonic", lambda: now)
        grain.run_combine(main, [], Cores(1), backend=backend)
    known = limit.known()
    assert known is not None
    assert (known.T, known.softT) == (20, 20)


def test_errors_that_pass_are_tried_again(backend: str) -> None:
    tries: list[int] = []

    async def try_it(enough: int) -> int:
        tries.append(1)
        if len(tries) < enough:
            raise Temporary
        return len(tries)

    async def main(enough: int) -> Any:
        async with grain.open_waitgroup() as wg:
            wg.options(temporary_err=(Temporary,)).submit(ZERO, try_it, enough)
        return wg.results

    assert grain.run_combine(partial(main, 3), backend=backend) == [3]
    tries.clear()
    with pytest.raises(ExceptionGroup):
        grain.run_combine(partial(main, 4), backend=backend)
    assert len(tries) == 3


def test_an_option_that_is_none_is_refused(backend: str) -> None:
    async def main() -> None:
        async with grain.open_waitgroup() as wg:
            wg.options(retries=3)

    with pytest.raises(ExceptionGroup) as raised:
        grain.run_combine(main, backend=backend)
    assert raised.group_contains(TypeError, match="there is no option `retries`")
    with pytest.raises(TypeError, match="there is no option `config_file`: there are"):
        grain.run_combine(main, config_file=False)


def test_a_cache_is_asked_first(backend: str) -> None:
    kept = {1: "kept"}

    async def look_up(second: int) -> tuple[bool, Any]:
        return second in kept, kept.get(second)

    async def compute(first: int, second: int) -> str:
        return f"computed {first} {second}"

    compute.cache_fn, compute.cache_res = look_up, ZERO  # type: ignore[attr-defined]

    async def main() -> Any:
        async with grain.open_waitgroup() as wg:
            wg.load_cache_or_submit(Cores(1), compute, 7, 1)
            wg.load_cache_or_submit(Cores(1), compute, 7, second=2)
        return wg.results

    assert grain.run_combine(main, [], Cores(1), backend=backend) == [
        "kept",
        "computed 7 2",
    ]


def test_what_can_never_be_met_is_refused_at_once(backend: str) -> None:
    async def main() -> None:
        with pytest.raises(NeverFits, match=r"cpu 3 is more than .*: cpu 2"):
            await grain.exec1(Cores(3), double, 1)

    grain.run_combine(main, [], Cores(2), backend=backend)


def test_an_executor_runs_in_a_plain_block(backend: str) -> None:
    with grain.GrainExecutor([], Memory(8), backend=backend) as executor:
        numbers = [executor.submit(Memory(2), double, one) for one in range(6)]
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert executor.results == [0, 2, 4, 6, 8, 10]


def test_a_failure_leaves_the_block_of_an_executor_in_a_group(backend: str) -> None:
    tries: list[int] = []

    async def pass_by() -> None:
        tries.append(1)
        raise Temporary

    with (
        pytest.raises(ExceptionGroup) as raised,
        grain.GrainExecutor(backend=backend) as executor,
    ):
        executor.submit(ZERO, fail)
    assert raised.group_contains(Critical)
    with (
        pytest.raises(ExceptionGroup) as raised,
        grain.GrainExecutor(backend=backend, temporary_err=(Temporary,)) as executor,
    ):
        executor.submit(ZERO, pass_by)
    assert raised.group_contains(Temporary)
    assert len(tries) == 3


def test_groups_one_after_the_other_and_what_they_print(
    backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def say() -> None:
        sys.stdout.write("something\n")

    async def main() -> None:
        for _ in range(2):
            async with grain.open_waitgroup() as wg:
                wg.submit(ZERO, say)
                wg.submit(Cores(1), print, "from a child")
            assert wg.results == [None, None]

    grain.run_combine(main, [], Cores(1), backend=backend)
    assert sorted(capfd.readouterr().out.splitlines()) == [
        *["from a child"] * 2,
        *["something"] * 2,
    ]


def test_an_executor_tells_results_as_they_come() -> None:
    async def program() -> None:
        async with grain.GrainExecutor([], Memory(1)) as executor:
            first = await executor.asubmit(Memory(1), double, 1)
            assert await executor.resultq.receive() == (first, 2)
            executor.submit(Memory(1), double, 2)
        assert executor.results == [2, 4]
        assert [one async for one in executor.resultq] == [(2, 4)]
        executor.resultq.close()

    asyncio.run(program())
    trio.run(program)


def test_a_coroutine_function_is_tried_again_by_itself(backend: str) -> None:
    tries: list[int] = []

    @grain.aretry(3, (Temporary,))
    async def try_it() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise Temporary
        return len(tries)

    assert grain.run_combine(try_it, backend=backend) == 3


def test_a_task_that_waits_takes_little_memory() -> None:
    count = 20_000

    async def main() -> float:
        async with grain.open_waitgroup() as wg:
            hold = anyio.Event()
            wg.submit(Cores(1), hold.wait)
            await anyio.lowlevel.checkpoint()
            gc.collect()
            tracemalloc.start()
            for _ in range(count):
                wg.submit(Cores(1), double, 1)
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            gc.collect()
            size, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            wg.submit(ZERO, pid)
            hold.set()
            raise Critical(size / count)

    with pytest.raises(ExceptionGroup) as raised:
        grain.run_combine(main, [], Cores(1), backend="asyncio")
    (error,) = raised.value.exceptions
    assert error.args[0] < 1024
