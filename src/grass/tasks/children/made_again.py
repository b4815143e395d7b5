"""Exceptions whose classes take other arguments than those that they keep.

Python makes an exception again by calling its class with `args`, which fails where
`__init__` takes something else. Here nothing is called: the exception gets its `args`
and its attributes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


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
