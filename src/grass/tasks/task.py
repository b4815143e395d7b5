"""One task of a program: a call, what it asks for, and who waits for it."""

from __future__ import annotations

import inspect
from contextlib import suppress
from functools import partial
from types import FunctionType
from typing import Protocol

from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from grass.resource import WTime
    from grass.tasks.core.task_units import TaskRequest, TaskStart
    from grass.tasks.functions import Snapshot

    ErrorKinds = type[BaseException] | Iterable[type[BaseException]]

TRIES = 3
"""How often a task is run at most: after errors that pass, or when its process dies."""


class Owner(Protocol):
    """Who has submitted a task and waits for it."""

    snapshot: Snapshot
    """The functions as they were when they were first submitted here."""

    @property
    def is_cancelled(self) -> bool:
        """Whether nothing more of it is to begin."""

    def begin(self, task: Task) -> None:
        """Run a coroutine function, which has its units now."""

    def succeeded(self, task: Task) -> None:
        """Take the result of a task."""

    def failed(self, task: Task, error: BaseException) -> None:
        """Take the error of a task."""


class Options:
    """What is not an argument of the function: how often it is tried, and when."""

    __slots__ = ("name", "persistent", "priority", "reschedule", "temporary_err")

    def __init__(
        self,
        *,
        reschedule: bool = True,
        persistent: bool = True,
        temporary_err: ErrorKinds = (),
        priority: int = 0,
        name: str | None = None,
    ) -> None:
        self.reschedule = reschedule
        self.persistent = persistent
        self.temporary_err = _kinds_of_errors(temporary_err)
        # It is compared with those of others, long after the call that gave it.
        if type(priority) is not int:
            raise UsageError(
                f"`priority` is {priority!r}", "give a whole number: 1 goes before 0"
            )
        self.priority = priority
        self.name = name

    def changed(self, **changes: Any) -> Options:  # noqa: ANN401
        """Return the same options but for some; refuse what is none."""
        known = {name: getattr(self, name) for name in Options.__slots__}
        self.check(changes, tuple(known))
        return Options(**{**known, **changes})

    @staticmethod
    def check(changes: Iterable[str], known: tuple[str, ...]) -> None:
        """Refuse names that are no options."""
        unknown = set(changes).difference(known)
        if unknown:
            raise TypeError(
                f"there is no option `{min(unknown)}`: there are {', '.join(known)}"
            )


def _kinds_of_errors(given: ErrorKinds) -> tuple[type[BaseException], ...]:
    """Read one kind of errors or several, as `except` does."""
    if isinstance(given, type):
        given = (given,)
    with suppress(TypeError):
        found = tuple(given)
        if all(issubclass(one, BaseException) for one in found):
            return found
    raise UsageError(
        f"`temporary_err` is {given!r}", "name classes of exceptions: `(OSError,)`"
    )


class Task:
    """A function to be called once its units are free."""

    __slots__ = (
        "args",
        "ask",
        "function",
        "is_async",
        "limit",
        "limit_s",
        "more",
        "number",
        "options",
        "owner",
        "place",
        "start",
        "tries",
        "value",
    )

    def __init__(
        self,
        owner: Owner,
        options: Options,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        more: dict[str, Any],
    ) -> None:
        self.owner = owner
        self.options = options
        self.is_async = is_async(function)
        self.function: Callable[..., Any] | None = (
            function if self.is_async else getattr(function, "grass_plain", function)
        )
        self.args = args
        self.more = more or None
        self.ask: TaskRequest | None = None
        self.limit: WTime | None = None
        self.limit_s: float | None = None
        """How long it may take; known when it begins."""
        self.number = 0
        """Its place among all tasks of the program."""
        self.place = 0
        """Its place among those of its owner."""
        self.tries = 1
        self.start: TaskStart | None = None
        """What it was given; None: it waits, or has ended."""
        self.value: Any = None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self.options.name or name_of(self.function)

    def overtime(self) -> TimeoutError:
        """Return the error of a task that has reached its limit."""
        return TimeoutError(f"`{self.name}` took longer than {self.limit_s:g} s")

    def may_run_again(self, *, failed_by_itself: bool) -> bool:
        """Tell whether it is tried once more."""
        if not self.options.reschedule or self.tries >= TRIES:
            return False
        return failed_by_itself or self.options.persistent

    def forget_call(self) -> None:
        """Drop function and arguments: it has ended, and only its value is kept."""
        self.function, self.args, self.more, self.start = None, (), None, None


def is_async(function: object) -> bool:
    """Tell whether a call gives a coroutine that can run in this process."""
    if type(function) is FunctionType and not function.__dict__:
        return function.__code__.co_flags & inspect.CO_COROUTINE != 0
    if hasattr(function, "grass_plain"):
        return False
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 -- is it a coroutine function
    )


async def awaited(
    function: Callable[..., Any],
    /,
    *args: Any,  # noqa: ANN401
    **kwargs: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return what a coroutine function returns; refuse any other."""
    coroutine = function(*args, **kwargs)
    if not hasattr(coroutine, "__await__"):
        raise UsageError(
            f"`{name_of(function)}` is no coroutine function",
            "write `async def`, or submit it as a task",
        )
    return await coroutine


def check_is_function(function: object) -> None:
    """Refuse what cannot be called, such as a coroutine that was made already."""
    if callable(function):
        return
    if inspect.iscoroutine(function):
        name = function.__qualname__
        # Python would add that nobody has awaited it.
        function.close()
        raise UsageError(
            f"`{name}` was called already",
            f"give the function, then its arguments: `{name}, 1`, not `{name}(1)`",
        )
    raise UsageError(
        f"{function!r} is no function", "give a function, then its arguments"
    )


def name_of(function: object) -> str:
    """Return the name of a function."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
