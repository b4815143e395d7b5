"""Wait-groups: tasks that run side by side, and are all done when the block ends.

The first exception cancels the others, and all of them leave the block as an exception
group. Results are in the order of submission. `exec1` is one task, waited for at once.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError

import anyio
import anyio.lowlevel

from grass.errors import UsageError
from grass.resource import ZERO
from grass.tasks.coroutines import Coroutines, own_cancellation
from grass.tasks.session import session_for
from grass.tasks.task import awaited, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Any, NoReturn, Self

    from grass.resource import Resource
    from grass.tasks.functions import Snapshot
    from grass.tasks.session import Session
    from grass.tasks.task import Options, Task
    from grass.tasks.variables import Held

    Function = Callable[..., Any]


def open_waitgroup() -> WaitGroup:
    """Return a wait-group, to be used as `async with open_waitgroup() as wg`."""
    return WaitGroup(session_for("open_waitgroup"))


class Submitting:
    """Submits tasks to a wait-group, with some options."""

    def __init__(self, group: WaitGroup, options: Options) -> None:
        self._of = group
        self._options = options

    def submit(self, res: Resource, fn: Function, /, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Have a function called once its resources are free."""
        self._of.add(self._options, res, fn, args, kwargs)

    async def asubmit(
        self,
        res: Resource,
        fn: Function,
        /,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Submit, and let other tasks go on."""
        self._of.add(self._options, res, fn, args, kwargs)
        await anyio.lowlevel.checkpoint()

    def start_subtask(self, fn: Function, /, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Run a coroutine function here, at once; it may submit more."""
        self._of.add_subtask(fn, args, kwargs)

    def load_cache_or_submit(
        self,
        res: Resource,
        fn: Function,
        /,
        *args: Any,  # noqa: ANN401
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Submit a function, unless `fn.cache_fn` has its result."""
        self._of.add_subtask(load_cache_or_exec1, (res, fn, *args), kwargs)


class WaitGroup(Submitting):
    """Tasks that are all done when the block ends."""

    def __init__(self, session: Session) -> None:
        super().__init__(self, session.options)
        self.results: list[Any] = []
        """The results in the order of submission, once the block has ended."""
        self.snapshot: Snapshot = {}
        self._session = session
        self._tasks: list[Task | _Subtask] = []
        self._open: dict[int, Task | _Subtask] = {}
        self._all_done: anyio.Event | None = None
        self._is_entered = self._has_ended = False

    def options(self, **options: Any) -> Submitting:  # noqa: ANN401
        """Return what submits to this group with other options.

        `reschedule=False` runs nothing twice, `persistent=False` nothing whose process
        has died, `temporary_err=(Error,)` runs again what raises one of these;
        `priority=1` goes before 0; `name=` is another name in messages. Where tasks are
        jobs of a broker, all options of `enqueue` but those that state a request are
        some: `queue=`, `project=`, `after=[job]`, `output=`.
        """
        return Submitting(self, self._options.changed(**options))

    async def __aenter__(self) -> Self:
        """Begin the block."""
        if self._is_entered:
            raise UsageError(
                "this wait-group was entered already",
                "call `open_waitgroup()` for each block, also inside of another",
            )
        self._is_entered = True
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._coroutines = Coroutines(self._session, self, self._group)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Wait for all tasks; cancel them if one or the block has failed."""
        if error is None:
            try:
                await self._wait()
            except BaseException as raised:  # noqa: BLE001 -- passed on to the task group
                error, kind, traceback = raised, type(raised), raised.__traceback__
        if error is None:
            self._has_ended = True
            self._session.progress.erase()
            self.results = [task.value for task in self._tasks]
            return await self._group.__aexit__(None, None, None)
        self._group.cancel_scope.cancel()
        await self._cancel_all()
        try:
            return await self._group.__aexit__(kind, error, traceback)
        finally:
            # A coroutine may have submitted more while it was cancelled, and one that
            # was cancelled before its first step has given nothing back.
            await self._cancel_all()
            self._has_ended = True
            for task in self._waited_for():
                self._session.drop(task)

    def add(
        self,
        options: Options,
        res: Resource,
        fn: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Add a task."""
        self._check_is_open()
        place = len(self._tasks)
        task = self._session.submit(self, options, res, fn, args, kwargs)
        task.place = place
        self._tasks.append(task)
        self._open[place] = task

    def add_subtask(
        self, fn: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Run a coroutine function as part of this group."""
        self._check_is_open()
        subtask = _Subtask(len(self._tasks))
        self._tasks.append(subtask)
        self._open[subtask.place] = subtask
        self._group.start_soon(self._run_subtask, subtask, fn, args, kwargs)

    def _check_is_open(self) -> None:
        if not self._is_entered:
            raise UsageError(
                "this wait-group was not entered",
                "write `async with open_waitgroup() as wg:`",
            )
        if self._has_ended:
            raise UsageError(
                "the block of this wait-group has ended",
                "submit inside of it, or open another with `open_waitgroup()`",
            )

    @property
    def is_cancelled(self) -> bool:
        """Whether a task or the block has failed."""
        return self._group.cancel_scope.cancel_called

    def begin(self, task: Task) -> None:
        """Run a coroutine function, which has its units now."""
        self._coroutines.begin(task)

    def succeeded(self, task: Task) -> None:
        """Take the result of a task."""
        task.forget_call()
        self._close(task.place)

    def failed(self, task: Task, error: BaseException) -> None:
        """Have an error of another process cancel the group."""
        self._open.pop(task.place, None)
        self._group.start_soon(_raise, error)

    def raised(self, _task: Task, error: Exception) -> None:
        """Have an error of a coroutine function cancel the group."""
        raise error

    async def _run_subtask(
        self,
        subtask: _Subtask,
        fn: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        try:
            subtask.value = await awaited(fn, *args, **kwargs)
        except CancelledError as error:
            raise own_cancellation(name_of(fn), error) from error
        self._close(subtask.place)

    def _close(self, place: int) -> None:
        del self._open[place]
        if not self._open and self._all_done is not None:
            self._all_done.set()

    async def _wait(self) -> None:
        while self._open:
            self._all_done = anyio.Event()
            await self._all_done.wait()

    async def _cancel_all(self) -> None:
        with anyio.CancelScope(shield=True):
            await self._session.cancel(self._waited_for())

    def _waited_for(self) -> list[Task]:
        return [task for task in self._open.values() if not isinstance(task, _Subtask)]


class _Subtask:
    """A coroutine function that runs as part of a group without asking for units."""

    __slots__ = ("place", "value")

    def __init__(self, place: int) -> None:
        self.place = place
        self.value: object = None


async def _raise(error: BaseException) -> NoReturn:
    raise error


async def exec1(res: Resource, fn: Function, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
    """Call a function once its resources are free; return what it returns."""
    session = session_for("exec1")
    owner = _One(session)
    task = session.submit(owner, session.options, res, fn, args, kwargs)
    return await owner.result(task)


async def run_in_child(
    session: Session,
    held: Held,
    fn: Function,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:  # noqa: ANN401
    """Run a plain function in a child, on what the calling task holds already."""
    owner = _One(session)
    task = session.run_on_held(owner, held, fn, args, kwargs)
    return await owner.result(task)


class _One:
    """The owner of a task that is waited for at once."""

    def __init__(self, session: Session) -> None:
        self.snapshot: Snapshot = {}
        self._session = session
        self._ready = anyio.Event()
        self._error: BaseException | None = None

    is_cancelled = False

    def begin(self, _task: Task) -> None:
        self._ready.set()

    def succeeded(self, _task: Task) -> None:
        self._ready.set()

    def failed(self, _task: Task, error: BaseException) -> None:
        self._error = error
        self._ready.set()

    async def result(self, task: Task) -> Any:  # noqa: ANN401
        """Wait for the task; cancel it if this is cancelled."""
        try:
            await self._ready.wait()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._session.cancel([task])
            self._session.drop(task)
            raise
        self._session.progress.erase()
        if self._error is not None:
            raise self._error
        # A coroutine function that runs here has its units now; any other has ended.
        return task.value if task.start is None else await self._session.call(task)


async def load_cache_or_exec1(
    res: Resource,
    fn: Function,
    /,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return what `fn.cache_fn` has kept, or call the function.

    `cache_fn` takes some of the parameters of `fn`, by their names, and returns whether
    it has the result, and the result. It is a task that asks for `fn.cache_res`; where
    that is `ZERO` it is called here, and one that raises has nothing.
    """
    cache_res = getattr(fn, "cache_res", ZERO)
    if not hasattr(fn, "cache_fn"):
        raise UsageError(
            f"`{name_of(fn)}` has no `cache_fn`", "set it, or call `exec1`"
        )
    cache_fn: Function = fn.cache_fn
    bound = inspect.signature(fn).bind(*args, **kwargs)
    bound.apply_defaults()
    missing = inspect.signature(cache_fn).parameters.keys() - bound.arguments.keys()
    if missing:
        raise UsageError(
            f"`cache_fn` takes `{min(missing)}`, which the function does not"
        )
    wanted = {
        name: bound.arguments[name] for name in inspect.signature(cache_fn).parameters
    }
    if cache_res.parts:
        found, value = await exec1(cache_res, cache_fn, **wanted)
    else:
        try:
            found, value = await cache_fn(**wanted)
        except Exception:  # noqa: BLE001 -- without the cache the function is called
            found, value = False, None
    return value if found else await exec1(res, fn, *args, **kwargs)
