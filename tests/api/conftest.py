"""The event loops that a server has to work with."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Both event loops: the tests' and the daemon's."""
    chosen: Callable[..., None] = request.param
    return chosen
