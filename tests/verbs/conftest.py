"""A real daemon, which the tests call as a Python program does."""

from collections.abc import Iterator

import pytest

from tests.support.fixtures import cold, fifo, gate, home, lasting, news, shared
from tests.support.homes import GrassHome

__all__ = ["cold", "fifo", "gate", "home", "lasting", "news", "shared"]


@pytest.fixture
def desk(shared: GrassHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[GrassHome]:
    """The folder's home, as that of this process."""
    with monkeypatch.context() as patch:
        for name in ("GRASS_HOME", "PATH"):
            patch.setenv(name, shared.environment[name])
        patch.chdir(shared.desk)
        yield shared
