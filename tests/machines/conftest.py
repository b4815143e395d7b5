"""The fixtures of tests with several machines."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.machines.cluster import Cluster
from tests.support.fixtures import cold, fifo, gate, machine, news, screens
from tests.support.lan import Lan, can_make_hosts

__all__ = ["cold", "fifo", "gate", "machine", "news", "screens"]


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Leave out what needs namespaces where none can be made."""
    if not can_make_hosts():
        pytest.skip("network namespaces cannot be made here")


@pytest.fixture
def lan(tmp_path: Path, namespaces: None) -> Iterator[Lan]:
    """A broker's host and two workers' hosts on one switch."""
    with closing(Lan(tmp_path, ("broker", "w1", "w2"))) as lan:
        yield lan


@pytest.fixture
def cluster(lan: Lan) -> Cluster:
    """The same with a broker that runs, and no worker yet."""
    return Cluster(lan)
