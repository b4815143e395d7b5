"""Exceptions that are sent to another process, and are the same there.

Python makes an exception again by calling its class with `args`, which fails where
`__init__` takes something else. Here nothing is called: the exception gets its `args`
and its attributes. Those that cannot be pickled are left out, which a note says. The
exceptions of a group are looked at one by one.
"""

from __future__ import annotations

import pickle
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def sendable(error: BaseException) -> Exception | MadeAgain | None:
    """Return what is read as this exception elsewhere; None: there is no such thing."""
    if not isinstance(error, Exception):
        # It would end the program that reads it.
        return None
    error = error.with_traceback(None)
    with suppress(Exception):
        # Many can be written and not be read, or are read as something else.
        if not isinstance(error, ExceptionGroup) and str(_sent(error)) == str(error):
            return error
    for made in (_whole, _in_part):
        with suppress(Exception):
            found = made(error)
            str(_sent(found))
            return found
    return None


def in_words(error: BaseException) -> str:
    """Return the class of an exception and what it says, if that can be asked."""
    said = ""
    with suppress(Exception):
        said = str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _sent(value: object) -> object:
    """Return a value as it will be read; classes of a script go by value alone."""
    import cloudpickle

    return pickle.loads(cloudpickle.dumps(value, 5))  # noqa: S301 -- our own


def _can_be_sent(value: object) -> bool:
    with suppress(Exception):
        _sent(value)
        return True
    return False


def _whole(error: Exception) -> MadeAgain:
    if isinstance(error, ExceptionGroup):
        return MadeAgain(type(error), _group_args(error), dict(vars(error)))
    return MadeAgain(type(error), error.args, dict(vars(error)))


def _in_part(error: Exception) -> MadeAgain:
    """Leave out attributes that cannot be pickled, and take arguments as text."""
    attributes = {name: has for name, has in vars(error).items() if _can_be_sent(has)}
    left_out = [f"`{name}`" for name in vars(error) if name not in attributes]
    args = tuple(one if _can_be_sent(one) else repr(one) for one in error.args)
    if isinstance(error, ExceptionGroup):
        args = _group_args(error)
    if left_out:
        note = f"{', '.join(left_out)} cannot be pickled, and did not come along"
        attributes["__notes__"] = [*getattr(error, "__notes__", ()), note]
    return MadeAgain(type(error), args, attributes)


def _group_args(group: ExceptionGroup[Exception]) -> tuple[Any, ...]:
    members = [sendable(one) for one in group.exceptions]
    if None in members:
        raise TypeError("one of a group cannot be sent")
    return group.message, members


class MadeAgain:
    """Is written in place of an exception, and read as that exception."""

    def __init__(
        self,
        kind: type[BaseException],
        args: tuple[Any, ...],
        attributes: dict[str, Any],
    ) -> None:
        self._parts = kind, args, attributes

    def __reduce__(self) -> tuple[Any, ...]:
        """Have the exception made from its parts."""
        return made_again, self._parts


def made_again(
    kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]
) -> BaseException:
    """Make an exception without calling its class."""
    if issubclass(kind, BaseExceptionGroup):
        error: BaseException = kind.__new__(kind, *args)
    else:
        error = kind.__new__(kind)
        error.args = args
    vars(error).update(attributes)
    return error
