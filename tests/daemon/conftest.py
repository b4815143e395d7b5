"""The fixtures of tests with a real daemon."""

from collections.abc import Iterator

import pytest

from tests.support.fixtures import (
    cold,
    database,
    fifo,
    gate,
    gpus,
    home,
    lasting,
    machine,
    news,
    postgres,
    screens,
    shared,
)
from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, Machine, forget_others

__all__ = [
    "cold",
    "database",
    "fifo",
    "gate",
    "gpus",
    "home",
    "lasting",
    "machine",
    "news",
    "postgres",
    "screens",
    "shared",
]


@pytest.fixture
def broker(machine: Machine) -> GrassHome:
    """A machine `desk` with a broker that others can join, and a worker."""
    home = machine("broker")
    home.ok("start", *LOOPBACK, "--name", "desk")
    return home


@pytest.fixture(scope="session")
def lasting_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrassHome]:
    """The home of a broker that others can join."""
    home = GrassHome(tmp_path_factory.mktemp("hub"))
    home.ok("start", *LOOPBACK, "--name", "desk")
    yield home
    home.end()


@pytest.fixture
def hub(lasting_hub: GrassHome) -> Iterator[GrassHome]:
    """The same as `broker`, for tests that leave its daemon alone.

    It comes before `machine` among the arguments of a test: the machines of a test have
    ended when the broker forgets them.
    """
    yield lasting_hub
    forget_others(lasting_hub, "desk")
    lasting_hub.tidy()
