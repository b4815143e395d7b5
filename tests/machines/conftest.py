"""The fixtures of tests with several machines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.cluster import Cluster
from tests.support.fixtures import fifo, gate, news
from tests.support.lan import Lan, can_make_hosts

__all__ = ["fifo", "gate", "news"]


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    """A broker's host and two workers' hosts on one switch."""
    if not can_make_hosts():
        pytest.skip("network namespaces cannot be made here")
    lan = Lan(tmp_path, ("broker", "w1", "w2"))
    yield lan
    lan.close()


@pytest.fixture
def cluster(lan: Lan) -> Cluster:
    """The same with a broker that runs, and no worker yet."""
    return Cluster(lan)
