"""A home, and brokers played by the test."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grass.client.connection import last_answer
from grass.config import Home
from tests.cli.fake_broker import FakeBroker

Play = Callable[..., FakeBroker]


@pytest.fixture(autouse=True)
def _no_version_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo at the end of a test that the version of its daemon was noted."""
    monkeypatch.setattr(last_answer, "version", None)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in [name for name in os.environ if name.startswith("GRASS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GRASS_AUTOSTART", "0")
    return Home(str(tmp_path))


@pytest.fixture
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Play]:
    """Play brokers, which all end with the test."""
    playing: list[FakeBroker] = []

    def begin(**how: Any) -> FakeBroker:
        playing.append(FakeBroker(tmp_path_factory.mktemp("broker"), **how))
        return playing[-1]

    yield begin
    for one in playing:
        one.close()
