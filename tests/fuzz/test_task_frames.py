"""Arguments and results of tasks of any size: each arrives, and whole.

A socket takes about 200 kB before its reader reads, so the sizes lie around that, and
several frames are put while an earlier one still waits to be sent.
"""

import socket
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import grass as grain
from grass.config import MARKER
from grass.resource import Cores
from grass.tasks.children import payloads
from grass.tasks.functions import pickled
from grass.tasks.host.conversation import Conversation
from grass.tasks.host.host_frames import (
    END,
    FUNCTION,
    OPEN,
    RESULT,
    TASK,
    TEACH,
    HostFrame,
)
from grass.tasks.host.host_program import HostProgram
from grass.tasks.host.socket_transport import Listener, SocketTransport
from tests.fuzz.dose import bounded, examples
from tests.tasks.functions import Block, swapped

SIZES = st.one_of(
    st.integers(0, 1000),
    st.integers(60_000, 70_000),
    st.integers(150_000, 1_000_000),
    st.sampled_from([1 << 18, 3_000_000, 8_000_000]),
)
MAKE: dict[str, Callable[[int], Any]] = {
    "bytes": lambda size: b"x" * size,
    "str": lambda size: "x" * size,
    "bytearray": bytearray,
    "block": lambda size: Block(bytearray(size)),
}
"""A block is sent as shared memory where it is large, the others through the socket."""


class Call(NamedTuple):
    """The sizes of an argument and of a result, and the kind of both."""

    kind: str
    argument: int
    result: int


CALLS = st.lists(
    st.builds(Call, st.sampled_from(sorted(MAKE)), SIZES, SIZES),
    min_size=1,
    max_size=12,
)
THIRTY = [Call("bytes", 1_000_000, 1_000_000)] * 30


@pytest.fixture(scope="module", autouse=True)
def _no_daemon() -> Any:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as home:
        patch.setenv("GRASS_HOME", home)
        patch.delenv(MARKER, raising=False)
        yield


def size_of(value: Any) -> int:
    return len(value.content if isinstance(value, Block) else value)


def check(calls: list[Call], results: list[Any]) -> None:
    for call, (length, value) in zip(calls, results, strict=True):
        assert (length, size_of(value)) == (call.argument, call.result)
        assert type(value) is type(MAKE[call.kind](0))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@examples(30)
@given(CALLS)
@example(THIRTY)
def test_each_argument_and_result_arrives_in_a_program(
    backend: str, calls: list[Call]
) -> None:
    async def main() -> list[Any]:
        async with grain.open_waitgroup() as group:
            for call in calls:
                argument = MAKE[call.kind](call.argument)
                group.submit(Cores(1), swapped, argument, call.result)
        return group.results

    with bounded(60):
        check(calls, grain.run_combine(main, [], Cores(2), backend=backend))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@examples(10)
@given(CALLS)
@example(THIRTY)
def test_each_argument_and_result_arrives_with_an_executor(
    backend: str, calls: list[Call]
) -> None:
    executor = grain.GrainExecutor([], Cores(2), backend=backend)
    with bounded(60):
        with executor:
            for call in calls:
                argument = MAKE[call.kind](call.argument)
                executor.submit(Cores(1), swapped, argument, call.result)
        check(calls, executor.results)


@examples(30)
@given(CALLS, st.integers(1, 4))
@example(THIRTY, 2)
def test_each_argument_and_result_arrives_at_a_task_host(
    calls: list[Call], children: int
) -> None:
    """All calls are put at once, which sends them ahead of their turn."""
    with bounded(60), tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "channel"))
        results = anyio.run(_through_a_host, Listener(path), path, calls, children)
        check(calls, results)


async def _through_a_host(
    listener: Listener, path: str, calls: list[Call], children: int
) -> list[Any]:
    results: dict[int, Any] = {}

    def taken(frames: list[HostFrame]) -> None:
        for frame in frames:
            if frame.kind == RESULT:
                results[frame.number] = payloads.load(frame.data, frame.descriptor)
        if len(results) == len(calls):
            talk.put(HostFrame(END))

    talk = Conversation(b"{}", lambda _greeting: None, taken)
    for frame in _frames(calls, children):
        talk.put(frame)
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(path)
        async with anyio.create_task_group() as group:
            group.start_soon(talk.run, SocketTransport(channel))
            await HostProgram(listener, "asyncio", 60).run()
    listener.close()
    return [results[number] for number in range(len(calls))]


def _frames(calls: list[Call], children: int) -> list[HostFrame]:
    found = [HostFrame(FUNCTION, number=0, data=pickled(swapped))]
    for child in range(children):
        found += [HostFrame(OPEN, child), HostFrame(TEACH, child, 0)]
    for number, call in enumerate(calls):
        arguments = (MAKE[call.kind](call.argument), call.result)
        payload = payloads.dump((0, arguments, ()))
        found.append(HostFrame(TASK, number % children, number, *payload))
    return found
