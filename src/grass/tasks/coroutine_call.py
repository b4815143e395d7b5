"""A coroutine function where nothing runs an event loop: which one it is given."""

from __future__ import annotations

import sys
from functools import partial
from importlib.util import find_spec

from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any


def chosen_backend(backend: str | None) -> str:
    """Return what was asked for; else trio if the program has loaded it, or asyncio."""
    if backend is None:
        return "trio" if "trio" in sys.modules else "asyncio"
    if backend not in ("asyncio", "trio"):
        raise UsageError(f"there is no backend `{backend}`", "asyncio or trio")
    if backend == "trio" and find_spec("trio") is None:
        raise UsageError("trio is not installed", "`pip install trio`")
    return backend


def run_coroutine(
    backend: str,
    function: Callable[..., Coroutine[Any, Any, Any]],
    *args: Any,  # noqa: ANN401
    **more: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Run a coroutine function in an event loop of its own."""
    import anyio

    return anyio.run(partial(function, *args, **more), backend=backend)
