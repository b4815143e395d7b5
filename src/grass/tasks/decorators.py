"""Decorators for functions that are tasks: run in a child, or tried several times."""

from __future__ import annotations

import functools

from grass.resource import Cores
from grass.tasks import variables
from grass.tasks.session import session_for
from grass.tasks.task import is_async
from grass.tasks.wait_group import exec1, run_in_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    Coroutine = Callable[..., Awaitable[Any]]


def subprocify(fn: Callable[..., Any]) -> Coroutine:
    """Make a plain function a coroutine function that runs it in a child process.

    Submitted, it is the same as the plain function. Awaited inside of a task, it runs
    on what that task holds; awaited anywhere else, it waits for a core.
    """
    if is_async(fn):
        raise TypeError(
            f"`{fn.__name__}` is a coroutine function, which runs in this process: "
            "`subprocify` is for plain functions"
        )

    @functools.wraps(fn)
    async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        session = session_for(fn.__name__)
        held = variables.held.get(None)
        if held is None or not held[0]:
            return await exec1(Cores(1), fn, *args, **kwargs)
        return await run_in_child(session, held, fn, args, kwargs)

    call.grass_plain = fn  # type: ignore[attr-defined]
    return call


def aretry(
    tries: int = 3, errors: tuple[type[Exception], ...] = (Exception,)
) -> Callable[[Coroutine], Coroutine]:
    """Call a coroutine function again when it raises one of these errors."""

    def decorate(fn: Coroutine) -> Coroutine:
        @functools.wraps(fn)
        async def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            for _ in range(tries - 1):
                try:
                    return await fn(*args, **kwargs)
                except errors:
                    pass
            return await fn(*args, **kwargs)

        return call

    return decorate
