"""Homes on a machine with a GPU; without `GRASS_GPU_TESTS` nothing is collected."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.gpu.gpu_home import HOLD, GpuHome

collect_ignore_glob = [] if os.environ.get("GRASS_GPU_TESTS") else ["test_*.py"]


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuHome]:
    """A home whose daemon serves the tests of a whole file."""
    home = GpuHome(tmp_path_factory.mktemp("gpu"))
    home.environment.pop("CUDA_VISIBLE_DEVICES", None)
    home.ok("start", "--name", "real")
    yield home
    home.end()


@pytest.fixture
def real(lasting: GpuHome) -> Iterator[GpuHome]:
    """The home of a file's tests; what a test leaves there is cleared away."""
    yield lasting
    lasting.tidy()


@pytest.fixture
def stranger() -> Iterator[Callable[[int], int]]:
    """Have a process that is no job hold so many MiB of GPU 0; returns its pid."""
    with ExitStack() as ends:
        yield lambda mib: ends.enter_context(_stranger(mib))


@contextmanager
def _stranger(mib: int) -> Iterator[int]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRASS_")}
    with subprocess.Popen(
        [sys.executable, HOLD, str(mib)],
        env={**environment, "CUDA_VISIBLE_DEVICES": "0"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("holding")
            yield process.pid
        finally:
            process.kill()
