"""Both event loops, in a home without a daemon; and GPUs that a test makes up."""

from pathlib import Path

import pytest

from grass.config import MARKER
from grass.devices import gpu_monitor
from tests.support.gpus import FakeGpus


@pytest.fixture(autouse=True)
def _no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each program find no daemon, and be in no job."""
    monkeypatch.setenv("GRASS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(MARKER, raising=False)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """Return the name of an event loop."""
    return str(request.param)


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    """Return the GPUs that this process finds; there are none at first."""
    made = FakeGpus(tmp_path / "gpus")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    # A process reads LD_LIBRARY_PATH when it starts, so this one has no library.
    monkeypatch.setattr(gpu_monitor, "library_present", lambda: True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return made
