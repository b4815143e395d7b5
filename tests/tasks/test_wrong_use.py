"""Each wrong use is one sentence, with the next step."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

import grass as grain
from grass.errors import GrassError, NeverFits, UsageError
from grass.resource import ZERO, Cores, Gpu, Memory
from tests.tasks.functions import add

Main = Callable[[], Awaitable[Any]]


async def double(number: int) -> int:
    return 2 * number


def test_each_wrong_use_is_a_sentence_with_the_next_step(backend: str) -> None:
    with pytest.raises(UsageError, match="call `run_combine"):
        grain.open_waitgroup()
    with pytest.raises(UsageError, match=r"`rpw` says what each machine gives"):
        grain.run_combine(anyio.sleep_forever, ["node1:7501"])

    async def main() -> None:
        group = grain.open_waitgroup()
        with pytest.raises(UsageError, match="async with open_waitgroup"):
            group.submit(ZERO, double, 1)
        async with group:
            pass
        with pytest.raises(UsageError, match="entered already"):
            await group.__aenter__()
        with pytest.raises(UsageError, match="runs already"):
            grain.run_combine(main)

    grain.run_combine(main, backend=backend)


async def submit_after_the_end() -> None:
    async with grain.open_waitgroup() as group:
        pass
    group.submit(ZERO, double, 1)


async def start_after_the_end() -> None:
    async with grain.open_waitgroup() as group:
        pass
    group.start_subtask(double, 1)


async def start_before() -> None:
    grain.open_waitgroup().start_subtask(double, 1)


async def submitted(*words: Any) -> None:
    group: Any = grain.open_waitgroup()
    async with group:
        group.submit(*words)


async def started(function: Any) -> None:
    async with grain.open_waitgroup() as group:
        group.start_subtask(function)


async def with_options(**options: Any) -> None:
    async with grain.open_waitgroup() as group:
        group.options(**options).submit(ZERO, double, 1)


INSIDE: list[tuple[Main, str]] = [
    (submit_after_the_end, "has ended .submit inside of it, or open another"),
    (start_after_the_end, "has ended .submit inside of it"),
    (start_before, "was not entered .write `async with"),
    (lambda: submitted(add, 1), "is no resource .say first what a task asks for"),
    (lambda: submitted(1, add), "1 is no resource"),
    (lambda: submitted(Cores(1), None), "None is no function"),
    (
        lambda: submitted(Cores(1), double(1)),
        "`double` was called already .give the function, then",
    ),
    (lambda: with_options(priority="high"), "`priority` is 'high' .give a whole"),
    (lambda: with_options(priority=0.5), "`priority` is 0.5 .give a whole number"),
    (lambda: with_options(temporary_err=3), "`temporary_err` is 3 .name classes"),
    (lambda: with_options(temporary_err="OSError"), "`temporary_err` is 'OSError'"),
    (lambda: started(list), "is no coroutine function .write `async def`"),
    (lambda: submitted(Gpu(1), add), "gpu 1 is more .* name more in `rpw`"),
    (lambda: submitted(Memory("9T"), add), "ram .* is more than this program has"),
    (lambda: grain.load_cache_or_exec1(ZERO, double, 1), "`double` has no `cache_fn`"),
    (
        lambda: grain.exec1(Cores(1), threading.Lock),
        "the result of `.*lock`, a lock, cannot be pickled: .*return what it can be",
    ),
]


@pytest.mark.parametrize(("main", "said"), INSIDE)
def test_inside_of_a_program(main: Main, said: str, backend: str) -> None:
    with pytest.raises((GrassError, ExceptionGroup)) as raised:
        grain.run_combine(main, [], Cores(1), backend=backend)
    error: BaseException = raised.value
    while isinstance(error, ExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, UsageError | NeverFits)
    assert re.search(said, str(error))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((3,), "3 is no function"),
        (([double, 3],), "3 is no function"),
        ((list,), "`list` is no coroutine function"),
        ((anyio.sleep_forever, [], 4), "4 is no resource"),
        ((anyio.sleep_forever, Cores(4)), r"are a list, not Cores.4. .*, \[\], Cores"),
    ],
)
def test_what_is_no_program(words: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        grain.run_combine(*words)


def test_a_backend_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"no backend `curio` .asyncio or trio"):
        grain.run_combine(anyio.sleep_forever, backend="curio")
    monkeypatch.setattr("grass.tasks.coroutine_call.find_spec", lambda _name: None)
    with pytest.raises(UsageError, match="trio is not installed"):
        grain.run_combine(anyio.sleep_forever, backend="trio")


def test_resources_with_something_else() -> None:
    cores: Any = Cores(1)
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = cores & 3
    with pytest.raises(TypeError, match="not supported between"):
        _ = cores >= 3
    with pytest.raises(UsageError, match="cpu must be a number, not '16'"):
        Cores("16")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="3 is no resource"):
        grain.Executor(request=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"no `max_workers`.*name .* `rpw="):
        grain.Executor(max_workers=4)
    with pytest.raises(UsageError, match=r"`a b` is not a resource kind .use letters"):
        grain.Kind("a b", 1)


def test_amounts_may_be_named_as_for_jobs() -> None:
    async def main() -> str:
        return repr(grain.GVAR.res)

    async def both() -> Any:
        return await grain.exec1(Cores(1) & Memory(1), main)

    assert (
        grain.run_combine(both, [], {"cpu": 1, "ram": "1G"}) == "CPU([0]) & Memory(1)"
    )
    with grain.GrainExecutor(rpw={"cpu": 1}, backend="asyncio") as executor:
        executor.submit(Cores(1), asyncio.sleep, 0, "slept")
    assert executor.results == ["slept"]
