"""A daemon on a machine with GPUs."""

import os
from pathlib import Path

import pytest

from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.processes import await_end

pytestmark = pytest.mark.daemon


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def test_a_daemon_finds_gpus_by_a_child_and_loads_no_library(
    cold: GrassHome, gpus: FakeGpus
) -> None:
    gpus.device(0, memory="40G")
    gpus.device(1, memory="80G", name="NVIDIA H200")
    cold.environment.update(gpus.environment)
    cold.ok("start")
    [worker] = cold.document()["workers"]
    assert worker["devices"]["gpu"]["1"]["name"] == "NVIDIA H200"
    job = cold.enqueue("--vram", "60G", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    cold.wait(job)
    assert cold.logs(job) == "1\n"
    daemon = cold.daemon_pid()
    assert daemon is not None
    assert "nvidia-ml" not in Path(f"/proc/{daemon}/maps").read_text()
    [child] = children(daemon)
    assert "gpu_child" in Path(f"/proc/{child}/cmdline").read_text()
    cold.ok("stop")
    await_end(child)


def test_a_daemon_without_a_driver_has_no_child(cold: GrassHome) -> None:
    if os.path.exists("/proc/driver/nvidia"):
        pytest.skip("this machine has a driver")
    cold.ok("start")
    daemon = cold.daemon_pid()
    assert daemon is not None
    assert children(daemon) == []
