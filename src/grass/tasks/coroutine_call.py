"""A coroutine function where nothing runs an event loop: in a runner, as a job."""

from __future__ import annotations

from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any


def run_coroutine(
    backend: str,
    function: Callable[..., Coroutine[Any, Any, Any]],
    *args: Any,  # noqa: ANN401
    **more: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Run a coroutine function in an event loop of its own."""
    import anyio

    return anyio.run(partial(function, *args, **more), backend=backend)
