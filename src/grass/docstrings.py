"""Pages of the Python reference: headings, calls and what their docstrings say."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def about(documented: object) -> str:
    """Return the docstring of something."""
    return inspect.getdoc(documented) or ""


def section(name: str, called: Callable[..., object], heading: str) -> str:
    """Return what is said of one function, class or method."""
    words = str(inspect.signature(called)).replace("'", "")
    words = words.replace("(self, ", "(").replace("(self)", "()")
    words = words.replace("<class Exception>", "Exception")
    return f"{heading} {name}\n\n```python\n{name}{words}\n```\n\n{about(called)}\n"


def methods(
    kind: type, instance: str, is_shown: Callable[[str], bool]
) -> Iterable[str]:
    """Return what is said of the methods of a class, called on `instance`."""
    for name, member in vars(kind).items():
        if inspect.isfunction(member) and not name.startswith("_") and is_shown(name):
            yield section(f"{instance}.{name}", member, "###")
