"""A real keeper in a directory of its own, gone with all its jobs after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from grass.keeper.launch import start_keeper

from .conversation import Daemon, end_all


@pytest.fixture
def make_daemon(tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Start a keeper where none runs, and connect; at the end nothing is left."""
    directories: set[Path] = set()
    with ExitStack() as ends, ExitStack() as hanging_up:

        def make(directory: Path = tmp_path) -> Daemon:
            start_keeper(str(directory))
            if directory not in directories:
                directories.add(directory)
                ends.callback(end_all, directory)
            return hanging_up.enter_context(closing(Daemon(directory)))

        yield make


@pytest.fixture
def daemon(make_daemon: Callable[..., Daemon]) -> Daemon:
    return make_daemon()
