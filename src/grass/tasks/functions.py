"""Functions and calls as bytes for children: each function once, by number.

A function that a child can import is sent by name, any other by value: those of
`__main__`, notebooks, lambdas and closures. By value it is sent as it was when a
wait-group first submitted it: pickling it anew for each call would cost more than most
calls. A `Snapshot` is what one wait-group has sent. What was sent is kept on both
sides, so that is bounded: large functions, and those after the first `MOST`, go along
with each of their calls.

Modules beside the script are found by a child, which has the program's `sys.path`; for
other machines see `neighbours`.
"""

from __future__ import annotations

import os

from grass.errors import UsageError
from grass.tasks.children import payloads
from grass.tasks.task import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from grass.tasks.task import Task

    Snapshot = dict[int, "tuple[object, Any]"]
    """By the identity of a function: the function, and what stands for it."""


MOST = 256
"""How many functions are kept by their numbers."""
_LARGE = 1 << 16
NONE = -1
"""The number of a function that goes along with each call."""


class Functions:
    """The functions of a program that were sent to children, by number."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.data: list[bytes] = []
        """The bytes of each function, by its number."""

    def number(self, function: Callable[..., Any], snapshot: Snapshot) -> int:
        """Return the number of a function; less than 0: it goes with each call."""
        known = snapshot.get(id(function))
        if known is None:
            if len(self.data) >= MOST:
                return NONE
            known = snapshot[id(function)] = function, self._add(function)
        number: int = known[1]
        return number

    def _add(self, function: Callable[..., Any]) -> int:
        data = pickled(function)
        if len(data) > _LARGE:
            return NONE
        number = self._numbers.setdefault(data, len(self.data))
        if number == len(self.data):
            self.data.append(data)
        return number

    def call(self, task: Task) -> tuple[int, bytes, int | None]:
        """Return the number of a task's function and its call as bytes."""
        assert task.function is not None
        number = self.number(task.function, task.owner.snapshot)
        more = tuple(task.more.items()) if task.more else ()
        args = task.args if number >= 0 else (task.function, *task.args)
        try:
            return number, *payloads.dump((number, args, more))
        except Exception as error:
            if number < 0:
                pickled(task.function)
            raise unpicklable(task.name, task.args, task.more or {}) from error


def pickled(function: Callable[..., Any], name: str = "") -> bytes:
    """Return the bytes of a function; an error calls it by this name."""
    try:
        return payloads.dump_whole(function)
    except Exception as error:
        raise UsageError(
            f"`{name or name_of(function)}` cannot be sent to another process: {error}",
            "give it what it needs as arguments, or open it inside the function",
        ) from error


def unpicklable(name: str, args: Sequence[Any], more: Mapping[str, Any]) -> UsageError:
    """Name the argument that cannot be pickled."""
    named: list[tuple[int | str, Any]] = [*enumerate(args, 1), *more.items()]
    for place, value in named:
        try:
            _, descriptor = payloads.dump(value)
        except Exception as error:  # noqa: BLE001 -- whatever a class raises
            shown = f"argument {place}" if isinstance(place, int) else f"`{place}=`"
            kind = type(value).__name__
            return UsageError(
                f"{shown} of `{name}`, a {kind}, cannot be pickled: {error}",
                "a plain function runs in another process; pass what makes the object",
            )
        if descriptor is not None:
            os.close(descriptor)
    return UsageError(f"the arguments of `{name}` cannot be pickled")
