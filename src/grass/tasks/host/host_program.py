"""What a task host does: it keeps children for a program, and passes frames on.

The program decides everything: which child runs which task, on which units. The host
starts children, hands them what comes for them, and sends back what they answer; it
looks at none of it. It ends when the program says so, or was not heard for a while.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import platform
import sys
import time

import anyio
import anyio.to_thread

from grass.errors import ProtocolError
from grass.tasks.children import frames
from grass.tasks.children.child import ChildProcess
from grass.tasks.host.conversation import Conversation
from grass.tasks.host.coroutines import KILLED, HostCoroutines
from grass.tasks.host.host_frames import (
    END,
    ERROR,
    FRAMES_VERSION,
    FUNCTION,
    GONE,
    HOLD,
    KILL,
    LEAVE,
    OPEN,
    READY,
    RESULT,
    SETUP,
    TASK,
    TEACH,
    HostFrame,
)
from grass.tasks.program_units import ProgramUnits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Any

    from grass.tasks.host.socket_transport import Listener, SocketTransport

COROUTINES = b"coroutines"
"""In place of GPUs: the child runs coroutine functions."""

_KINDS = {frames.RESULT: RESULT, frames.ERROR: ERROR, frames.READY: READY}


def greeting() -> bytes:
    """Say who one is: machine, versions."""
    about = {
        "machine": platform.node(),
        "python": platform.python_version(),
        "program": sys.executable,
        "frames": str(FRAMES_VERSION),
    }
    return json.dumps(about).encode()


class HostProgram:
    """A task host while it runs."""

    def __init__(self, listener: Listener, backend: str, patience_s: float) -> None:
        """It leaves when nobody was connected for `patience_s`."""
        self._listener = listener
        self._patience_s = patience_s
        self._talk = Conversation(greeting(), lambda _other: None, self._taken)
        self._program = ProgramUnits({})
        self._children: dict[int, ChildProcess] = {}
        self._loops: dict[int, _LoopChild] = {}
        self._functions: dict[int, bytes] = {}
        self._touched: dict[ChildProcess, None] = {}
        self._coroutines = HostCoroutines(
            backend, lambda: self._program, self._answer_soon
        )
        self._over = anyio.Event()
        self.problem = ""
        """Why it has ended, if the program did not say so."""

    async def run(self) -> None:
        """Serve the program until it says that it is done, or is gone."""
        self._loop = asyncio.get_running_loop()
        async with anyio.create_task_group() as self._group:
            self._group.start_soon(self._serve)
            self._group.start_soon(self._watch)
            await self._over.wait()
            for child in self._children.values():
                child.kill()
            self._group.cancel_scope.cancel()

    async def _serve(self) -> None:
        transport = await self._listener.accept()
        while True:
            transport = await self._talk_over(transport)

    async def _talk_over(self, transport: SocketTransport) -> SocketTransport:
        """Use a connection until there is another one, which is returned."""
        found: list[SocketTransport] = []
        async with anyio.create_task_group() as group:

            async def await_next() -> None:
                found.append(await self._listener.accept())
                group.cancel_scope.cancel()

            group.start_soon(await_next)
            try:
                await self._talk.run(transport)
            except ProtocolError as error:
                self._end(str(error))
            finally:
                transport.close()
        return found[0]

    async def _watch(self) -> None:
        """End when the program was not heard for long."""
        left_s = self._patience_s
        while left_s > 0:
            await anyio.sleep(left_s)
            left_s = self._talk.heard_at + self._patience_s - time.monotonic()
        self._end(f"the program was not heard for {self._patience_s:g} s")

    def _end(self, problem: str) -> None:
        self.problem = self.problem or problem
        self._over.set()

    def _taken(self, arrived: list[HostFrame]) -> None:
        for frame in arrived:
            self._take(frame)
        touched, self._touched = self._touched, {}
        for child in touched:
            child.flush(self._group.start_soon)

    def _take(self, frame: HostFrame) -> None:
        if frame.kind == SETUP:
            self._program = ProgramUnits(pickle.loads(frame.data))  # noqa: S301
        elif frame.kind == FUNCTION:
            self._functions[frame.number] = frame.data
        elif frame.kind == END:
            self._over.set()
        elif frame.kind == OPEN:
            self._open(frame)
        elif frame.child in self._loops:
            self._tell_loop(self._loops[frame.child], frame)
        elif frame.child in self._children:
            self._tell_child(self._children[frame.child], frame)
        else:
            # It has died meanwhile, and the program will hear of that.
            frame.close()

    def _open(self, frame: HostFrame) -> None:
        if frame.data == COROUTINES:
            self._loops[frame.child] = _LoopChild()
            self._talk.put(HostFrame(READY, frame.child))
            return
        gpus = frame.data.decode().split(",") if frame.data else []
        try:
            child = ChildProcess(self._program.variables(gpus), frame.data.decode())
        except OSError as error:
            # No more processes, or no memory for one.
            sys.stderr.write(f"grass: no process can be started: {error}\n")
            self._talk.put(HostFrame(GONE, frame.child, data=b"1"))
            return
        self._children[frame.child] = child
        self._group.start_soon(self._answers, frame.child, child)

    def _tell_child(self, child: ChildProcess, frame: HostFrame) -> None:
        if frame.kind == HOLD:
            child.hold(frame.data, frame.descriptor)
        elif frame.kind == TEACH:
            child.teach(frame.number, self._functions[frame.number])
        elif frame.kind == TASK:
            child.send(frame.number, frame.data, frame.descriptor)
        elif frame.kind == LEAVE:
            child.leave()
            return
        else:
            assert frame.kind == KILL
            child.kill()
            return
        self._touched[child] = None

    def _tell_loop(self, loop: _LoopChild, frame: HostFrame) -> None:
        if frame.kind == HOLD:
            loop.held = frame
        elif frame.kind == TASK:
            loop.future = self._coroutines.run(frame, loop.held, self._functions)
        elif frame.kind in (KILL, LEAVE):
            del self._loops[frame.child]
            self._group.start_soon(self._end_loop, frame.child, loop)

    async def _end_loop(self, number: int, loop: _LoopChild) -> None:
        future = loop.future
        # Cancelling waits for the other thread, where a function may block.
        cancel = None if future is None else future.cancel
        if cancel is None or not await anyio.to_thread.run_sync(cancel):
            # Otherwise the task answers itself, when it has ended.
            self._talk.put(HostFrame(GONE, number, data=str(KILLED).encode()))

    def _answer_soon(self, frame: HostFrame) -> None:
        self._loop.call_soon_threadsafe(self._talk.put, frame)

    async def _answers(self, number: int, child: ChildProcess) -> None:
        """Pass on what a child answers until it has died."""
        try:
            while answers := await child.answers():
                for one in answers:
                    kind, data = _KINDS[one.kind], one.data
                    rest = (one.number, data, one.descriptor, one.seconds)
                    self._talk.put(HostFrame(kind, number, *rest))
        finally:
            code = await child.exit_code()
            del self._children[number]
            self._talk.put(HostFrame(GONE, number, data=str(code).encode()))


class _LoopChild:
    """What stands for a child where a coroutine function runs."""

    def __init__(self) -> None:
        self.held = HostFrame(HOLD)
        self.future: Future[Any] | None = None
