"""Coroutine functions of one owner, run in the tasks of its event loop.

To make a task of the loop costs more than most short functions take. So one of them, a
runner, runs function after function, as long as these do not wait. When one waits, the
next runner is started. Each function has a context of its own, whatever runs it.
"""

from __future__ import annotations

import types
from asyncio import CancelledError, current_task
from collections import deque
from contextvars import copy_context
from math import inf

import anyio
import anyio.lowlevel

from grass.tasks.errors import TaskFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from contextvars import Context
    from typing import Any, Protocol

    from anyio.abc import TaskGroup

    from grass.tasks.session import Session
    from grass.tasks.task import Owner, Task

    class Running(Owner, Protocol):
        """An owner whose coroutine functions are run here."""

        def raised(self, task: Task, error: Exception) -> None:
            """Take what a coroutine function has raised; it may raise it again."""


_MOST_IN_A_ROW = 16
"""After this many functions the loop has its turn, even if none of them waits."""


class Coroutines:
    """Runs the coroutine functions of an owner in a task group, which is open."""

    def __init__(self, session: Session, owner: Running, group: TaskGroup) -> None:
        self._session = session
        self._owner = owner
        self._group = group
        self._context = copy_context()
        self._ready: deque[Task] = deque()
        self._coming = 0
        """How many runners were started that have not begun."""
        self._is_running = False
        """Whether a runner runs at this moment: it looks for more when it is done."""

    def begin(self, task: Task) -> None:
        """Run a function that has its units now."""
        self._ready.append(task)
        if not self._is_running and not self._coming:
            self._add_runner()

    def _add_runner(self) -> None:
        self._coming += 1
        # Not in the context of whoever has freed the units of a task.
        self._context.run(self._group.start_soon, self._run)

    async def _run(self) -> None:
        self._coming -= 1
        here = copy_context()
        try:
            while self._ready:
                for _ in range(_MOST_IN_A_ROW):
                    if not self._ready:
                        return
                    self._is_running = True
                    await self._run_one(self._ready.popleft(), here)
                self._is_running = False
                await anyio.lowlevel.checkpoint()
        finally:
            self._is_running = False

    async def _run_one(self, task: Task, here: Context) -> None:
        if self._owner.is_cancelled:
            self._session.drop(task)
            return
        try:
            task.value = await self._in_context(here.copy(), self._session.call(task))
        except CancelledError as error:
            self._owner.raised(task, own_cancellation(task.name, error))
        except Exception as error:  # noqa: BLE001 -- it is the owner's
            self._owner.raised(task, error)
        else:
            self._owner.succeeded(task)

    @types.coroutine
    def _in_context(
        self, context: Context, coroutine: Coroutine[Any, Any, Any]
    ) -> Generator[Any, Any, Any]:
        """Run a coroutine in a context; start another runner while it waits."""
        step: Any = coroutine.send
        value: Any = None
        while True:
            try:
                waits_for = context.run(step, value)
            except StopIteration as done:
                return done.value
            self._is_running = False
            for _ in range(min(2, len(self._ready)) - self._coming):
                self._add_runner()
            try:
                value = yield waits_for
                step = coroutine.send
            except BaseException as error:  # noqa: BLE001 -- it is thrown there
                step, value = coroutine.throw, error
            self._is_running = True


def own_cancellation(name: str, error: CancelledError) -> Exception:
    """Return the error of a function that was not cancelled, and raised as if it was.

    It has awaited a future that was cancelled. Where it was cancelled itself this
    raises the same again.
    """
    task = current_task()
    is_asked = task is not None and task.cancelling() > 0
    if is_asked or anyio.current_effective_deadline() == -inf:
        raise error
    failed = TaskFailed(f"`{name}` raised CancelledError")
    failed.__cause__ = error
    return failed
