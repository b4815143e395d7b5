"""The fixtures of tests of screens: a daemon with two made-up GPUs."""

from collections.abc import Iterator

import pytest

from tests.support.fixtures import (
    cold,
    fifo,
    gate,
    home,
    machine,
    news,
    screens,
    shared,
)
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome

__all__ = ["cold", "fifo", "gate", "home", "machine", "news", "screens", "shared"]


@pytest.fixture(scope="session")
def two(tmp_path_factory: pytest.TempPathFactory) -> FakeGpus:
    gpus = FakeGpus(tmp_path_factory.mktemp("gpus") / "gpus")
    gpus.device(0, name="Card A", memory="80G", utilization=87, temperature=61)
    gpus.device(1, name="Card B", memory="40G")
    return gpus


@pytest.fixture(scope="session")
def lasting(
    tmp_path_factory: pytest.TempPathFactory, two: FakeGpus
) -> Iterator[GrassHome]:
    home = GrassHome(tmp_path_factory.mktemp("lasting"))
    home.environment.update(two.environment)
    two.program(home)
    home.ok("start", "--name", "desk")
    yield home
    home.end()
