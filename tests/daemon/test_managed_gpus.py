"""Which GPUs grass manages: --gpus and CUDA_VISIBLE_DEVICES, and how long they hold."""

import os
import signal

import pytest

from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.processes import await_end

pytestmark = pytest.mark.daemon

FIRST_TWO = {"CUDA_VISIBLE_DEVICES": "0,1"}


@pytest.fixture
def rich(cold: GrassHome, gpus: FakeGpus) -> GrassHome:
    """A home on a machine with three GPUs."""
    for number in range(3):
        gpus.device(number)
    cold.environment.update(gpus.environment)
    cold.environment.pop("CUDA_VISIBLE_DEVICES", None)
    return cold


def managed(home: GrassHome) -> list[str]:
    (worker,) = home.document()["workers"]
    assert (
        worker["capacity"].get("gpu", {}).keys()
        == worker["capacity"].get("vram", {}).keys()
    )
    return sorted(worker["capacity"].get("gpu", {}))


def test_the_variable_restricts_and_is_remembered_over_a_crash(
    rich: GrassHome,
) -> None:
    assert "Managing GPUs 0, 1" in rich.ok("start", env=FIRST_TWO)
    assert managed(rich) == ["0", "1"]
    pid = rich.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await_end(pid)
    # Another command starts it again, whatever that one's choice is.
    rich.ok("show", env={"CUDA_VISIBLE_DEVICES": "2"})
    assert managed(rich) == ["0", "1"]
    assert "Managing GPUs 0, 1" in rich.ok("restart", env={"CUDA_VISIBLE_DEVICES": "2"})
    assert managed(rich) == ["0", "1"]
    ran = rich.run("start", env={"CUDA_VISIBLE_DEVICES": "2"})
    assert ran.returncode == 0
    assert "grass restart --gpus" in ran.stderr
    assert "Managing" not in rich.ok("restart", "--gpus", "all")
    assert managed(rich) == ["0", "1", "2"]


def test_the_option_takes_uuids_and_none_and_refuses_what_is_not_there(
    rich: GrassHome,
) -> None:
    ran = rich.run("start", "--gpus", "0,7")
    assert ran.returncode == 2
    assert "no GPU `7`" in ran.stderr
    assert "Managing GPUs 1, 2" in rich.ok("start", "--gpus", "GPU-00000002, 1")
    assert managed(rich) == ["1", "2"]
    ran = rich.run("restart", "--gpus", "9")
    assert ran.returncode == 2
    assert managed(rich) == ["1", "2"]
    for none in ("none", "", "-1"):
        assert "Managing no GPUs" in rich.ok("restart", "--gpus", none)
        assert managed(rich) == []


def test_inside_a_job_the_variable_says_nothing(rich: GrassHome) -> None:
    rich.ok("start", env={**FIRST_TWO, "GRASS_ATTEMPT_ID": f"{'a' * 16}.1.1"})
    assert managed(rich) == ["0", "1", "2"]
