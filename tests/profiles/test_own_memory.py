"""A guest that asks again does not wait for memory that its own process has kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.profiles.programs import Programs
from tests.support.gpus import USE_GPU, FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

KEEPS = f"""
import sys
sys.path.append({str(USE_GPU.parent)!r})
import grass
from use_gpu import announce
with grass.allocate(gpu=1):
    announce("60G", "0")
print("kept", flush=True)
sys.stdin.readline()
with grass.allocate(gpu=1) as held:
    print("again", *held.gpus, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def desk(tmp_path: Path, gpus: FakeGpus) -> Iterator[GrassHome]:
    """Give a home with two GPUs that NVML tells of."""
    gpus.device(0, memory="80G")
    gpus.device(1, memory="80G")
    home = GrassHome(tmp_path)
    home.environment.update(gpus.environment)
    yield home
    home.end()


def withheld(home: GrassHome) -> Any:
    (worker,) = home.document()["workers"]
    return worker["withheld"].get("vram", {}).get("0", 0)


def test_it_starts_on_its_gpu_which_stays_withheld_from_others(
    desk: GrassHome, programs: Programs
) -> None:
    program = programs.begin(desk, KEEPS)
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stdout.readline() == "kept\n"
    desk.ok("gpu")
    until(lambda: withheld(desk), "nothing is withheld", lambda amount: amount == 60)
    other = desk.enqueue("-g", "1", "--gpu-model", "gpu:0", "--", "true")
    assert f"(pid {program.pid}, " in desk.reason(other)

    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "again 0\n"
    assert desk.state(other) == "queued"

    # With the process its memory is gone.
    program.communicate("\n")
    assert desk.wait(other)["state"] == "succeeded"
