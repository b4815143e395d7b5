"""The engines that the contract holds for: a fake, and a real Slurm of three nodes."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from grass.engines.engine_commands import EngineCommands
from grass.engines.provider import Provider
from grass.engines.slurm import Slurm
from tests.support.fake_engine import FakeEngine
from tests.support.slurm import SlurmCluster, missing_programs

HUNG_LIMIT_S = 0.5


class Engine(NamedTuple):
    """An engine, and what a test does to it."""

    provider: Provider
    hung: Provider
    """The same engine, asked with a short time limit."""
    hang: Callable[[], None]
    heal: Callable[[], None]


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    missing = missing_programs()
    if missing:
        pytest.skip(f"there is no Slurm here: {', '.join(missing)}")
    cluster = SlurmCluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(params=["fake", "slurm"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "slurm":
        yield from slurm_engine(request.getfixturevalue("slurm_cluster"))
    else:
        yield from fake_engine()


def fake_engine() -> Iterator[Engine]:
    fake = FakeEngine()

    def set_answers(answers: bool) -> None:
        fake.answers = answers

    yield Engine(fake, fake, lambda: set_answers(False), lambda: set_answers(True))
    fake.stop()


def slurm_engine(cluster: SlurmCluster) -> Iterator[Engine]:
    yield Engine(
        Slurm(EngineCommands(environment=cluster.environment)),
        Slurm(EngineCommands(environment=cluster.environment, limit_s=HUNG_LIMIT_S)),
        lambda: cluster.signal_controller(signal.SIGSTOP),
        lambda: cluster.signal_controller(signal.SIGCONT),
    )
    cluster.signal_controller(signal.SIGCONT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder where pilots run."""
    place = tmp_path / "pilots"
    place.mkdir()
    return place
