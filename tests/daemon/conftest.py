"""The fixtures of tests with a real daemon."""

import pytest

from tests.support.fixtures import (
    cold,
    fifo,
    gate,
    gpus,
    home,
    lasting,
    machine,
    news,
    shared,
)
from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, Machine

__all__ = [
    "cold",
    "fifo",
    "gate",
    "gpus",
    "home",
    "lasting",
    "machine",
    "news",
    "shared",
]


@pytest.fixture
def broker(machine: Machine) -> GrassHome:
    """A machine `desk` with a broker that others can join, and a worker."""
    home = machine("broker")
    home.ok("start", *LOOPBACK, "--name", "desk")
    return home
