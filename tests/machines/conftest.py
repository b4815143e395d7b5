"""The fixtures of tests with several machines."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.machines.cluster import Cluster
from tests.support.fixtures import (
    cold,
    database,
    fifo,
    gate,
    machine,
    news,
    postgres,
    screens,
)
from tests.support.lan import Lan, can_make_hosts

__all__ = [
    "cold",
    "database",
    "fifo",
    "gate",
    "machine",
    "news",
    "postgres",
    "screens",
]


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
def cluster(lan: Lan, request: pytest.FixtureRequest) -> Cluster:
    """The same with a broker that runs, and no worker yet.

    Its store is in a file, or where a test asks for `postgres`, in PostgreSQL.
    """
    if getattr(request, "param", "sqlite") == "sqlite":
        return Cluster(lan)
    return Cluster(lan, "--store", request.getfixturevalue("database"))
