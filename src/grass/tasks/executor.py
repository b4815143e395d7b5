"""`grass.Executor`: an executor of `concurrent.futures` whose calls ask for resources.

Its session runs in a thread of its own, so any thread may submit. A future that is
cancelled ends its task, also one that runs. What is left when the block or the program
ends is waited for, as by other executors; what ends it by Ctrl-C cancels it.
"""

from __future__ import annotations

import asyncio
import atexit
import signal
import sys
from concurrent.futures import Executor as FutureExecutor
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Event, Lock, Thread
from typing import TypeVar

import anyio

from grass.errors import GrassError, UsageError
from grass.resource import resource_from
from grass.tasks.coroutines import Coroutines
from grass.tasks.program_units import ProgramBlock
from grass.tasks.session import Session
from grass.tasks.task import Options, is_async, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Any

    from grass.resource import Asked
    from grass.tasks.functions import Snapshot
    from grass.tasks.program_units import ProgramUnits
    from grass.tasks.task import Task

    Call = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...], dict[str, Any]]

T = TypeVar("T")


class Executor(FutureExecutor):
    """Calls functions in child processes, each with what `request` asks for."""

    def __init__(
        self,
        request: Asked = None,
        *,
        rpw: Asked = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """`request` is of one call, such as `{"gpu": 0.5}`; None is one core.

        `rpw` is what all calls together have, as for `run_combine`; `options` are those
        of a wait-group.
        """
        if "max_workers" in options:
            raise UsageError(
                "an executor has no `max_workers`: it runs what there is room for",
                'name what all calls have together: `rpw={"cpu": 4}`',
            )
        self._request = resource_from(request)
        self._rpw = None if rpw is None else resource_from(rpw)
        self._options = Options().changed(**options)
        self.snapshot: Snapshot = {}
        self._lock = Lock()
        self._calls: list[Call] = []
        self._futures: dict[int, Future[Any]] = {}
        self._cancelled: list[Task] = []
        self._is_shut = False
        self._cancels_all = False
        self._thread: Thread | None = None
        self._block: ProgramBlock | None = None
        self._is_over = Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None

    def submit(
        self,
        fn: Callable[..., T],
        /,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> Future[T]:
        """Have a function called once its resources are free."""
        future: Future[T] = Future()
        with self._lock:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            if self._thread is None:
                self._begin()
            self._calls.append((future, fn, args, kwargs))
            if len(self._calls) == 1:
                self._wake()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; wait for those that were submitted, or cancel them."""
        with self._lock:
            self._is_shut = True
            self._cancels_all |= cancel_futures
            thread = self._thread
            left = [call[0] for call in self._calls] + list(self._futures.values())
        if thread is None:
            return
        atexit.unregister(self._leave)
        if cancel_futures:
            for future in left:
                future.cancel()
        self._wake()
        if wait:
            self._join(thread)

    def _join(self, thread: Thread) -> None:
        """Wait for the thread; what interrupts that cancels what is left."""
        try:
            # `join` that is interrupted takes the thread for ended from then on. In a
            # forked process there is no thread.
            if thread.is_alive():
                self._is_over.wait()
            thread.join()
        except BaseException as error:
            self._note_failure(error)
            self.shutdown(cancel_futures=True)
            raise

    def _note_failure(self, error: BaseException | None) -> None:
        """Have the program recorded as failed, where it is a guest of a daemon."""
        if self._block is not None and self._block.failure is None:
            self._block.failure = error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wait for what is left; cancel it if the block was interrupted."""
        is_interrupted = kind is not None and not issubclass(kind, Exception)
        self._note_failure(error)
        self.shutdown(cancel_futures=is_interrupted)

    def _leave(self) -> None:
        """Wait for what is left as the program ends, unless Ctrl-C ends it."""
        # In an interactive session it is that of an earlier line.
        is_session = hasattr(sys, "ps1")
        last = None if is_session else getattr(sys, "last_value", None)
        self._note_failure(last)
        try:
            self.shutdown(cancel_futures=isinstance(last, KeyboardInterrupt))
        except KeyboardInterrupt:
            _end_interrupted()

    def _wake(self) -> None:
        if self._loop is None:
            return
        # The loop is closed when all is done.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wanted.set)

    def _begin(self) -> None:
        """Start the thread, and wait until it has the units; raise if it cannot."""
        ready, block = Event(), ProgramBlock(self._rpw)
        self._block = block
        # In the context of the caller: it may be inside of a block of `allocate`.
        run = partial(copy_context().run, self._run, block, ready)
        self._is_over.clear()
        self._thread = Thread(target=run, daemon=True)
        try:
            self._thread.start()
            ready.wait()
        except BaseException:
            # Ctrl-C while it waits for units: nothing is to hold them later, and nobody
            # waits for the thread.
            self._is_shut, self._thread = True, None
            block.give_up()
            raise
        if self._failure is not None:
            self._thread = None
            failure, self._failure = self._failure, None
            raise failure
        atexit.register(self._leave)

    def _run(self, block: ProgramBlock, ready: Event) -> None:
        try:
            with block as program:
                anyio.run(self._serve, program, ready, backend="asyncio")
        except BaseException as error:  # noqa: BLE001 -- who submits is told
            if ready.is_set():
                self._break(error)
            else:
                self._failure = error
        finally:
            self._is_over.set()
            ready.set()

    def _break(self, error: BaseException) -> None:
        """Give all futures an error that has ended the session."""
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        with self._lock:
            self._is_shut = True
            left = [call[0] for call in self._calls] + list(self._futures.values())
        for future in left:
            with suppress(InvalidStateError):
                future.set_exception(error)

    async def _serve(self, program: ProgramUnits, ready: Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._wanted = asyncio.Event()
        async with (
            Session(program, self._options) as self._session,
            anyio.create_task_group() as group,
        ):
            self._coroutines = Coroutines(self._session, self, group)
            try:
                self._session.check(self._request)
            except GrassError as error:
                self._failure = error
                self._note_failure(error)
                return
            ready.set()
            while not self._is_done():
                await self._wanted.wait()
                self._wanted.clear()
                await self._take()

    def _is_done(self) -> bool:
        with self._lock:
            return self._is_shut and not self._calls and not self._futures

    async def _take(self) -> None:
        """Submit and cancel what other threads have left here."""
        with self._lock:
            calls, self._calls = self._calls, []
            cancelled, self._cancelled = self._cancelled, []
        # A function that is sent by value is sent as it is now.
        self.snapshot = {}
        for call in calls:
            self._submit_here(*call)
        await self._session.cancel(cancelled)
        for task in cancelled:
            self._cancel_here(task)

    def _submit_here(
        self,
        future: Future[Any],
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        options = self._options
        if is_async(fn):
            options = options.changed(name=options.name or name_of(fn))
            scope = anyio.CancelScope()
            fn = partial(_in_scope, scope, fn)
        task = self._session.submit(self, options, self._request, fn, args, kwargs)
        with self._lock:
            self._futures[task.number] = future
            # A shutdown has not seen it if it was on its way here.
            is_unwanted = self._cancels_all
        future.add_done_callback(partial(self._noted, task))
        if is_unwanted:
            future.cancel()

    def _noted(self, task: Task, future: Future[Any]) -> None:
        if future.cancelled():
            with self._lock:
                self._cancelled.append(task)
            self._wake()

    def _cancel_here(self, task: Task) -> None:
        if isinstance(task.function, partial) and task.function.func is _in_scope:
            task.function.args[0].cancel()
        future = self._futures.get(task.number)
        if future is not None:
            # Tells `wait` and `as_completed`, which `cancel` does not.
            future.set_running_or_notify_cancel()
        self._ended(task)

    is_cancelled = False

    def begin(self, task: Task) -> None:
        """Run a coroutine function, which has its units now."""
        self._coroutines.begin(task)

    def raised(self, task: Task, error: Exception) -> None:
        """Give a future the exception of a coroutine function."""
        self.failed(task, error)

    def succeeded(self, task: Task) -> None:
        """Give a future its result."""
        with suppress(InvalidStateError, KeyError):
            self._futures[task.number].set_result(task.value)
        self._ended(task)

    def failed(self, task: Task, error: BaseException) -> None:
        """Give a future its exception."""
        with suppress(InvalidStateError, KeyError):
            self._futures[task.number].set_exception(error)
        self._ended(task)

    def _ended(self, task: Task) -> None:
        task.forget_call()
        with self._lock:
            self._futures.pop(task.number, None)
            is_done = self._is_shut and not self._futures
        if is_done:
            self._wanted.set()


def _end_interrupted() -> None:
    """End a program that Ctrl-C interrupts while its exit handlers run.

    Python ignores exceptions of these, so that it would exit with 0.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 -- those that are left; nothing else does
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.raise_signal(signal.SIGINT)


async def _in_scope(
    scope: anyio.CancelScope,
    fn: Callable[..., Awaitable[Any]],
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    with scope:
        return await fn(*args, **kwargs)
