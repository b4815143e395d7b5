"""Coroutine functions on a task host: an event loop of their own, in a thread.

The host's own loop goes on while one of them blocks: otherwise the program would take
the machine to be cut off. The loop is of the kind that the program uses, and is started
with the first of them.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

import anyio
from anyio.from_thread import start_blocking_portal

from grass.errors import UsageError
from grass.tasks import session, variables
from grass.tasks.children import payloads
from grass.tasks.children.child_main import dumped_error, loaded
from grass.tasks.host.host_frames import ERROR, GONE, RESULT, HostFrame
from grass.tasks.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any, NoReturn

    from anyio.from_thread import BlockingPortal

    from grass.tasks.program_units import ProgramUnits

KILLED = -9


class HostSession(Session):
    """Lets coroutine functions await plain ones in children, and nothing more."""

    def submit(self, *_args: Any, **_more: Any) -> NoReturn:  # noqa: ANN401
        """Refuse: the tasks of the program are submitted where it runs."""
        raise UsageError(
            "a function that runs on another machine cannot submit tasks",
            "run it by `start_subtask`, where the program is: then it may submit more",
        )


class HostCoroutines:
    """The coroutine functions that run here."""

    def __init__(
        self,
        backend: str,
        program: Callable[[], ProgramUnits],
        answer: Callable[[HostFrame], None],
    ) -> None:
        """`answer` is called from another thread."""
        self._backend = backend
        self._program = program
        self._answer = answer
        self._portal: BlockingPortal | None = None
        self._session: Session | None = None
        self._open = ExitStack()
        self._loaded: dict[int, Callable[..., Any] | BaseException] = {}

    def run(
        self, frame: HostFrame, held: HostFrame, functions: dict[int, bytes]
    ) -> Future[Any]:
        """Begin to run a task with what it holds; its future can be cancelled."""
        if self._portal is None:
            self._portal = self._open.enter_context(
                start_blocking_portal(self._backend)
            )
            opened = self._portal.wrap_async_context_manager(
                HostSession(self._program())
            )
            self._session = self._open.enter_context(opened)
        return self._portal.start_task_soon(self._run, frame, held, functions)

    async def _run(
        self, frame: HostFrame, held: HostFrame, functions: dict[int, bytes]
    ) -> None:
        began = time.perf_counter()
        try:
            variables.held.set(payloads.load(held.data, held.descriptor))
            session.current.set(self._session)
            value = await self._called(frame, functions)
            kind, (data, descriptor) = RESULT, payloads.dump(value)
        except anyio.get_cancelled_exc_class():
            self._answer(HostFrame(GONE, frame.child, data=str(KILLED).encode()))
            raise
        except BaseException as error:  # noqa: BLE001 -- it is the task's, and sent back
            kind, data, descriptor = ERROR, dumped_error(error), None
        seconds = time.perf_counter() - began
        number = frame.number
        self._answer(HostFrame(kind, frame.child, number, data, descriptor, seconds))

    async def _called(self, frame: HostFrame, functions: dict[int, bytes]) -> Any:  # noqa: ANN401
        number, args, more = payloads.load(frame.data, frame.descriptor)
        if number < 0:
            function, *args = args
        else:
            if number not in self._loaded:
                self._loaded[number] = loaded(functions[number])
            function = self._loaded[number]
        if isinstance(function, BaseException):
            raise function
        return await function(*args, **dict(more))
