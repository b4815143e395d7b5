"""`@job`: a function that waits for a GPU, runs in its own process, and gives it back.

The job's name is its type, `path/file.py::function`. Exceptions pass through, and the
job has failed. Coroutine functions and generators hold their units until they end.
"""

from __future__ import annotations

import functools
import inspect
import os

from grass.errors import UsageError
from grass.profiles.allocation import allocate, policy_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from grass.profiles.allocation import Allocation, Amount

    Function = Callable[..., Any]


def job(  # noqa: PLR0913 -- each is one thing to ask for
    function: Function | None = None,
    *,
    jobstr: str | None = None,
    resource_policy: object = "spread",
    continue_on_server_unavailable: bool = False,
    gpu: Amount | None = None,
    vram: Amount | None = None,
    cpu: Amount | None = None,
    ram: Amount | None = None,
    require: Mapping[str, Amount] | None = None,
    priority: int | None = None,
    project: str | None = None,
    queue: str | None = None,
) -> Any:  # noqa: ANN401 -- a decorator, or what it decorated
    """Decorate a function that needs a GPU, as `@job` or `@job(...)`.

    Each call waits for its units: as much memory as was learned of its type, and until
    then one whole GPU, unless amounts are given. `jobstr` is the type under which it is
    learned and shown. With `continue_on_server_unavailable` it runs
    without a daemon, and says so once.
    """
    policy = policy_named(resource_policy)

    def decorate(decorated: Function) -> Function:
        named = jobstr or type_of(decorated)
        ask = functools.partial(
            allocate,
            gpu=gpu,
            vram=vram,
            cpu=cpu,
            ram=ram,
            require=require,
            name=named,
            job_type=named,
            priority=priority,
            project=project,
            queue=queue,
            policy=policy,
            continue_on_server_unavailable=continue_on_server_unavailable,
        )
        return _wrapped(decorated, ask)

    return decorate if function is None else decorate(function)


def type_of(function: Function) -> str:
    """Return the type of a job: the function's file, from here, and its name."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    path = code.co_filename if code is not None else function.__module__
    near = os.path.relpath(path) if os.path.isabs(path) else path
    path = path if near.startswith("..") else near
    return f"{path}::{function.__qualname__.replace('<locals>.', '')}"


class _Short:
    """The function that is measured in place of a long one, if there is such a one.

    It is called while nothing is known of the type, until it has returned once in this
    process: what comes of another call would be the same.
    """

    def __init__(self) -> None:
        self.function: Function | None = None
        self._has_returned = False

    def due(self, held: Allocation) -> Function | None:
        """Return the function, if it is to be called before the long one."""
        return None if held.profiled or self._has_returned else self.function

    def call(
        self, held: Allocation, args: tuple[Any, ...], more: dict[str, Any]
    ) -> None:
        """Call it, if it is due, and have it measured."""
        short = self.due(held)
        if short is not None:
            short(*args, **more)
            self.measured(held)

    def measured(self, held: Allocation) -> None:
        """Note that it has returned, and have learned what it used."""
        self._has_returned = True
        held.measured()


def _wrapped(function: Function, ask: Callable[[], Allocation]) -> Function:
    first = _Short()
    if inspect.iscoroutinefunction(function):
        call = _coroutine(function, ask, first)
    elif inspect.isgeneratorfunction(function):
        call = _generator(function, ask, first)
    else:
        call = _plain(function, ask, first)

    def profile(short: Function) -> Function:
        """Measure another function first: one that is short, and needs as much memory.

        It runs where nothing is known of the type yet. If it fails, the long one does
        not run.
        """
        if first.function is not None:
            raise UsageError(
                f"`{function.__qualname__}` is measured by"
                f" `{first.function.__qualname__}`",
                "a function has one that is measured in its place",
            )
        first.function = short
        return short

    call.profile = profile  # type: ignore[attr-defined]
    return call


def _plain(
    function: Function, ask: Callable[[], Allocation], first: _Short
) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **more: Any) -> Any:  # noqa: ANN401
        with ask() as held:
            first.call(held, args, more)
            return function(*args, **more)

    return call


def _generator(
    function: Function, ask: Callable[[], Allocation], first: _Short
) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **more: Any) -> Any:  # noqa: ANN401
        with ask() as held:
            first.call(held, args, more)
            return (yield from function(*args, **more))

    return call


def _coroutine(
    function: Function, ask: Callable[[], Allocation], first: _Short
) -> Function:
    @functools.wraps(function)
    async def call(*args: Any, **more: Any) -> Any:  # noqa: ANN401
        import anyio.to_thread

        async with ask() as held:
            short = first.due(held)
            if short is not None:
                begun = short(*args, **more)
                if inspect.isawaitable(begun):
                    await begun
                await anyio.to_thread.run_sync(first.measured, held)
            return await function(*args, **more)

    return call
