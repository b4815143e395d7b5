"""Details of GPUs: what a worker writes, and what is read of it."""

import pytest

from grass.model.amount_text import WHOLE
from grass.model.gpu_details import (
    FAR,
    GpuDetails,
    found_gpus,
    has_model,
    named_gpus,
    neighbour_details,
    visible_devices,
)
from grass.model.worker import Unit

HALF = range(0, 254, 2)


@pytest.mark.parametrize(
    ("cores", "text"),
    [
        ((), None),
        ((5,), "5"),
        ((0, 1, 2, 3), "0-3"),
        ((*range(16), *range(32, 48)), "0-15,32-47"),
        (tuple(HALF), "0-252:2"),
        ((0, 2, 3, 9), "0-2:2,3,9"),
        (tuple(range(0, 4000, 3)), None),
    ],
)
def test_cores_are_written_as_ranges_and_read_again(
    cores: tuple[int, ...], text: str | None
) -> None:
    details = neighbour_details({}, cores)
    assert details.get("cores") == text
    [read] = found_gpus({"gpu": {"0": Unit(WHOLE, details)}}).values()
    assert read.cores == (set() if text is None else {str(core) for core in cores})


def test_neighbours_are_written_by_nearness_and_read_as_distances() -> None:
    near = {"10": "nvlink", "2": "nvlink", "3": "same cpu", "4": "far"}
    details = neighbour_details(near)
    assert details == {"nvlink": "2,10", "same_cpu": "3"}
    read = found_gpus({"gpu": {"0": Unit(WHOLE, {**details, "name": "H100"})}})["0"]
    assert read == GpuDetails("H100", {"2": 0, "10": 0, "3": 3})
    assert [read.distance(unit) for unit in ("2", "3", "4")] == [0, 3, FAR]


@pytest.mark.parametrize(
    "text", ["-", "a-b", "5-99999", "0-4:0", "1-2-3", "0x10", "9" * 200]
)
def test_cores_that_are_not_understood_count_as_not_told(text: str) -> None:
    unit = Unit(WHOLE, {"cores": text})
    assert found_gpus({"gpu": {"0": unit}})["0"].cores == frozenset()


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a100", True),
        ("A100|H100", True),
        ("^NVIDIA", True),
        ("80GB$", True),
        ("H100", False),
        ("^A100", False),
    ],
)
def test_a_model_matches_anywhere_in_any_case(pattern: str, found: bool) -> None:
    assert has_model("NVIDIA A100-SXM4-80GB", pattern) is found


def test_cuda_is_told_numbers_where_they_are_sure_and_uuids_elsewhere() -> None:
    def gpu(**details: str | int) -> Unit:
        return Unit(WHOLE, details)

    sure = {"0": gpu(uuid="GPU-a", index=0), "2": gpu(uuid="GPU-b", index=1)}
    assert visible_devices(sure, ["0", "2"]) == "0,1"
    divided = {"0.1": gpu(uuid="MIG-a"), "1": gpu(uuid="GPU-b")}
    assert visible_devices(divided, ["0.1", "1"]) == "GPU-b,MIG-a"
    assert visible_devices({}, ["0", "3"]) == "0,3"
    assert visible_devices(sure, []) == ""


def test_units_are_named_where_a_model_may_be() -> None:
    assert named_gpus("gpu:0,2") == frozenset({"0", "2"})
    assert named_gpus("GPU") is None
    assert named_gpus("A100|gpu:0") is None
