"""The engines that the contract holds for.

A fake, a real Slurm of three nodes, and templates: around the commands of that Slurm,
and around a queue of this host. In `make ray-test` a real Ray.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from grass.engines.command_engine import CommandEngine
from grass.engines.engine_commands import EngineCommands
from grass.engines.provider import Provider
from grass.engines.ray_jobs import RayJobs
from grass.engines.slurm import Slurm
from tests.engines import templates
from tests.support.fake_engine import FakeEngine
from tests.support.local_queue import HUNG
from tests.support.ray_cluster import VARIABLE, RayCluster
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


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    cluster = RayCluster(folder)
    try:
        cluster.start_head()
        cluster.start_node()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


ENGINES = ["fake", "slurm", "slurm-template", "queue-template"]


@pytest.fixture(params=["ray"] if VARIABLE in os.environ else ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    if request.param == "ray":
        yield from ray_engine(request.getfixturevalue("ray_cluster"))
    elif request.param == "fake":
        yield from fake_engine()
    elif request.param == "queue-template":
        yield from queue_engine(tmp_path)
    else:
        made: Callable[[EngineCommands], Provider] = Slurm
        if request.param == "slurm-template":
            made = partial(CommandEngine, template=templates.template(templates.SLURM))
        yield from slurm_engine(request.getfixturevalue("slurm_cluster"), made)


def queue_engine(tmp_path: Path) -> Iterator[Engine]:
    folder = tmp_path / "queue"
    folder.mkdir()
    template = templates.template(templates.queue_text(folder))
    yield Engine(
        CommandEngine(EngineCommands(), template),
        CommandEngine(EngineCommands(limit_s=HUNG_LIMIT_S), template),
        (folder / HUNG).touch,
        (folder / HUNG).unlink,
    )


def fake_engine() -> Iterator[Engine]:
    fake = FakeEngine()

    def set_answers(answers: bool) -> None:
        fake.answers = answers

    yield Engine(fake, fake, lambda: set_answers(False), lambda: set_answers(True))
    fake.stop()


def ray_engine(cluster: RayCluster) -> Iterator[Engine]:
    yield Engine(
        RayJobs(cluster.address),
        RayJobs(cluster.address, limit_s=HUNG_LIMIT_S),
        lambda: cluster.signal_dashboard(signal.SIGSTOP),
        lambda: cluster.signal_dashboard(signal.SIGCONT),
    )
    cluster.signal_dashboard(signal.SIGCONT)


def slurm_engine(
    cluster: SlurmCluster, made: Callable[[EngineCommands], Provider]
) -> Iterator[Engine]:
    yield Engine(
        made(EngineCommands(environment=cluster.environment)),
        made(EngineCommands(environment=cluster.environment, limit_s=HUNG_LIMIT_S)),
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
