"""Homes with a daemon in them; afterwards nothing of them is left."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.fifo import Fifo
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.machines import Machine, machines
from tests.support.screen import leave_all

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> "PostgresServer":
    """A server that all processes of a run share."""
    pytest.importorskip("psycopg")
    from tests.support.postgres import missing_program, shared_server

    if missing_program() is not None:
        pytest.skip("there is no PostgreSQL, and installing it needs root")
    return shared_server()


@pytest.fixture
def database(postgres: "PostgresServer") -> Iterator[str]:
    """A PostgreSQL database, by its URL."""
    url = postgres.new_database()
    yield url
    postgres.drop(url)


@pytest.fixture
def cold(tmp_path: Path) -> Iterator[GrassHome]:
    """A home in which no daemon has run yet."""
    home = GrassHome(tmp_path)
    yield home
    home.end()


@pytest.fixture
def home(cold: GrassHome) -> GrassHome:
    """A home with a daemon that was started in the background."""
    cold.ok("start")
    return cold


@pytest.fixture(scope="session")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrassHome]:
    """A home whose daemon serves the tests of a whole folder."""
    home = GrassHome(tmp_path_factory.mktemp("lasting"))
    home.ok("start")
    yield home
    home.end()


@pytest.fixture
def shared(lasting: GrassHome) -> Iterator[GrassHome]:
    """The home of a folder's tests; what a test leaves there is cleared away."""
    yield lasting
    lasting.tidy()


@pytest.fixture(autouse=True)
def screens() -> Iterator[None]:
    """End commands on terminals that a test has left, as one does that fails."""
    yield
    leave_all()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Make homes, each as if it were another machine's."""
    with machines(tmp_path) as make:
        yield make


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Callable[[str], Fifo]]:
    """Make named pipes to talk with jobs."""
    with ExitStack() as ends:

        def make(name: str) -> Fifo:
            return ends.enter_context(closing(Fifo(tmp_path / name)))

        yield make


@pytest.fixture
def gate(fifo: Callable[[str], Fifo]) -> Fifo:
    """Jobs wait here with `read x < gate` until they are told to go on."""
    return fifo("gate")


@pytest.fixture
def news(fifo: Callable[[str], Fifo]) -> Fifo:
    """Jobs tell with `echo ... > news` how far they are."""
    return fifo("news")


@pytest.fixture
def gpus(tmp_path: Path) -> FakeGpus:
    """GPUs that a test makes up; there are none at first."""
    return FakeGpus(tmp_path / "gpus")
