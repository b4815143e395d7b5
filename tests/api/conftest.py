"""The event loop that a server has to work with."""

from collections.abc import Callable

import pytest
import uvloop


@pytest.fixture
def run() -> Callable[..., None]:
    """The daemon's event loop; most tests use the standard library's."""
    chosen: Callable[..., None] = uvloop.run
    return chosen
