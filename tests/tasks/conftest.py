"""Both event loops, in a home without a daemon."""

from pathlib import Path

import pytest

from grass.config import MARKER


@pytest.fixture(autouse=True)
def _no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each program find no daemon, and be in no job."""
    monkeypatch.setenv("GRASS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(MARKER, raising=False)


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    """Return the name of an event loop."""
    return str(request.param)
