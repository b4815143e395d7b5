"""Units of a machine."""

import os
from pathlib import Path

import pytest

from grass.devices.probe import boot_id, found_units
from grass.devices.readings import GpuSide, GpuTopology, GpuUnit, Nearness
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB


def test_without_a_gpu_there_are_only_cores_and_memory() -> None:
    units = found_units([], cgroup="")
    assert set(units) == {"cpu", "ram"}
    assert set(units["cpu"]) == {str(core) for core in os.sched_getaffinity(0)}
    assert units["ram"]["0"].amount > 0


@pytest.mark.parametrize(
    ("cpu", "memory", "cores", "gib"),
    [
        ("100000 100000\n", f"{GIB}\n", 1, 1),
        ("50000 100000\n", "max\n", 1, None),
        ("max 100000\n", f"{1 << 60}\n", None, None),
        (None, None, None, None),
    ],
)
def test_no_more_is_there_than_the_cgroup_allows(
    tmp_path: Path,
    cpu: str | None,
    memory: str | None,
    cores: int | None,
    gib: int | None,
) -> None:
    for name, text in (("cpu.max", cpu), ("memory.max", memory)):
        if text is not None:
            (tmp_path / name).write_text(text)
    units, host = found_units([], cgroup=str(tmp_path)), found_units([], cgroup="")
    assert len(units["cpu"]) == (cores or len(os.sched_getaffinity(0)))
    all_of_it = host["ram"]["0"].details["bytes"]
    assert units["ram"]["0"].details["bytes"] == (gib * GIB if gib else all_of_it)


def test_a_gpu_is_a_unit_and_so_is_its_memory() -> None:
    units = found_units([GpuUnit("1", "H200", "GPU-1", 80 * GIB, "GPU-1")])
    assert units["gpu"]["1"].amount == WHOLE
    assert units["gpu"]["1"].details == {
        "name": "H200",
        "uuid": "GPU-1",
        "memory_gib": 80,
    }
    assert units["vram"]["1"].amount == 80 * WHOLE


def test_a_gpu_tells_what_is_near_it() -> None:
    unit = GpuUnit("1", "H200", "GPU-1", 80 * GIB, "GPU-1", 1)
    near: dict[str, Nearness] = {"0": "nvlink", "2": "far"}
    topology = GpuTopology({"1": near}, {"1": GpuSide(1, (8, 9, 10))})
    details = found_units([unit], topology)["gpu"]["1"].details
    assert (details["index"], details["nvlink"], details["cores"]) == (1, "0", "8-10")


def test_a_boot_has_one_id() -> None:
    assert boot_id() == boot_id()
    assert len(boot_id()) == 36
