"""Units of a machine, with a fake NVML that is really loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grass.devices.probe import boot_id, found_units
from grass.model.amount_text import WHOLE

SOURCE = Path(__file__).parents[1] / "support" / "nvml" / "nvml.c"
PROBE = """
import msgspec, sys
from grass.devices import probe
probe.NVML_TIMEOUT_S = 0.2 if "hang" in sys.argv else 20.0
sys.stdout.write(msgspec.json.encode(probe.found_units()).decode())
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stand-in and return its folder."""
    folder = tmp_path_factory.mktemp("nvml")
    target = str(folder / "libnvidia-ml.so.1")
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", target, str(SOURCE)]
    subprocess.run(command, check=True)
    return folder


def found(folder: Path, behaviour: str) -> dict[str, Any]:
    """Probe in a new process, because a library is loaded only once."""
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder),
        "FAKE_NVML": behaviour,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROBE, behaviour],
        env=environment,
        capture_output=True,
        check=True,
        timeout=30,
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_gpus_are_found_with_name_uuid_and_memory(library: Path) -> None:
    units = found(library, "two")
    assert list(units["gpu"]) == ["0", "1"]
    assert units["gpu"]["1"]["amount"] == WHOLE
    details = units["gpu"]["1"]["details"]
    assert details["name"] == "Stand-in 1"
    assert details["uuid"] == "GPU-0000-1"
    assert {name: unit["amount"] for name, unit in units["vram"].items()} == {
        "0": 40 * WHOLE,
        "1": 80 * WHOLE,
    }


@pytest.mark.parametrize("behaviour", ["error", "hang"])
def test_a_library_that_fails_or_hangs_means_no_gpus(
    library: Path, behaviour: str
) -> None:
    assert set(found(library, behaviour)) == {"cpu", "ram"}


def test_a_faulty_gpu_is_left_out_and_does_not_hide_the_others(library: Path) -> None:
    units = found(library, "broken")
    assert list(units["gpu"]) == list(units["vram"]) == ["0"]


def test_a_file_that_is_no_library_means_no_gpus(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    assert set(found(tmp_path, "two")) == {"cpu", "ram"}


def test_without_a_driver_there_are_only_cores_and_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("grass.devices.probe._library_present", lambda: False)
    units = found_units()
    assert set(units) == {"cpu", "ram"}
    assert set(units["cpu"]) == {str(core) for core in os.sched_getaffinity(0)}
    assert units["ram"]["0"].amount > 0


def test_a_boot_has_one_id() -> None:
    assert boot_id() == boot_id()
    assert len(boot_id()) == 36
