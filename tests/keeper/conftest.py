"""A real keeper in a directory of its own, gone with all its jobs after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grass.keeper.launch import start_keeper

from .conversation import Daemon, end_all


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Start a keeper where none runs, and connect; at the end nothing is left."""
    made: list[Daemon] = []
    directories: set[Path] = set()

    def make(directory: Path = tmp_path) -> Daemon:
        start_keeper(str(directory))
        directories.add(directory)
        made.append(Daemon(directory))
        return made[-1]

    yield make
    for daemon in made:
        daemon.close()
    for directory in directories:
        end_all(directory)


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    return make_daemon()
