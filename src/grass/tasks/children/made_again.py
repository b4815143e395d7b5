"""Exceptions that are sent to another process, and are the same there.

Python makes an exception again by calling its class with `args`, which fails where
`__init__` takes something else. Here nothing is called: the exception gets its `args`
and its attributes.
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
        if str(_sent(error)) == str(error):
            return error
    with suppress(Exception):
        _sent(MadeAgain(error))
        return MadeAgain(error)
    return None


def _sent(value: object) -> object:
    """Return a value as it will be read; classes of a script go by value alone."""
    import cloudpickle

    return pickle.loads(cloudpickle.dumps(value, 5))  # noqa: S301 -- our own


class MadeAgain:
    """Is written in place of an exception, and read as that exception."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> tuple[Any, ...]:
        """Have the exception made from its parts."""
        error = self._error
        return made_again, (type(error), error.args, dict(vars(error)))


def made_again(
    kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]
) -> BaseException:
    """Make an exception without calling its class."""
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(attributes)
    return error
