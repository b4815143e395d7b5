"""A process in which CUDA has started on another GPU is told so."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.errors import Refused
from grass.profiles import cuda_state
from grass.profiles.allocation import Allocation
from tests.profiles.programs import python
from tests.support.gpus import FakeGpus, cuda_library
from tests.support.homes import GrassHome

UUIDS = {"0": "GPU-aa", "1": "GPU-bb", "1.0": "MIG-cc"}


def check(units: list[str], uuids: dict[str, str] | None = None) -> None:
    held = Allocation({"name": "fit"})
    held.units = {"gpu": units}
    held._check_device(UUIDS if uuids is None else uuids)


@pytest.mark.parametrize(
    ("seen", "units"),
    [
        (None, ["1"]),
        (["aa"], ["0"]),
        (["aa", "bb"], ["0"]),
        (["bb", "aa"], ["0", "1"]),
        (["cc"], ["1.0"]),
        (["bb"], []),
    ],
)
def test_gpu_that_cuda_sees_first_is_taken(
    monkeypatch: pytest.MonkeyPatch, seen: list[str] | None, units: list[str]
) -> None:
    monkeypatch.setattr(cuda_state, "visible_gpus", lambda: seen)
    check(units)


@pytest.mark.parametrize(
    ("seen", "units", "has"),
    [
        (["aa", "bb"], ["1"], "GPU 0 and cannot move to GPU 1"),
        (["aa"], ["0", "1"], "GPU 0 and"),
        (["ff"], ["0"], "GPU ff and"),
        ([], ["0"], "GPU none and"),
    ],
)
def test_another_gpu_is_refused(
    monkeypatch: pytest.MonkeyPatch, seen: list[str], units: list[str], has: str
) -> None:
    monkeypatch.setattr(cuda_state, "visible_gpus", lambda: seen)
    with pytest.raises(Refused, match="before anything in this process") as caught:
        check(units)
    assert has in str(caught.value)


def test_gpus_without_a_known_uuid_are_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda_state, "visible_gpus", lambda: ["aa"])
    check(["1"], {})


def test_nothing_is_loaded_to_find_out() -> None:
    if cuda_state.visible_gpus() is None:
        with open("/proc/self/maps") as maps:
            assert "libcuda.so" not in maps.read()


CUDA_FIRST = """
import ctypes, grass, os
ctypes.CDLL(os.environ["CUDA_LIBRARY"]).cuInit(0)
with grass.allocate(gpu=1, name="late") as a:
    print(*a.gpus)
"""


@pytest.fixture
def desk(tmp_path: Path, gpus: FakeGpus) -> Iterator[GrassHome]:
    """Give a home with two GPUs that NVML tells of."""
    gpus.device(0)
    gpus.device(1)
    home = GrassHome(tmp_path)
    home.environment.update(gpus.environment, CUDA_LIBRARY=str(cuda_library()))
    yield home
    home.end()


def test_a_process_with_cuda_on_another_gpu_is_refused_and_holds_nothing(
    desk: GrassHome,
) -> None:
    ran = python(desk, CUDA_FIRST, CUDA_VISIBLE_DEVICES="1")
    assert ran.returncode == 1
    assert (
        "grass.errors.Refused: this process already uses GPU 1 and cannot move to GPU 0"
        " (allocate before anything in this process uses CUDA)"
    ) in ran.stderr
    assert desk.wait(1)["state"] == "failed"
    # All is free again for one whose GPU it is.
    assert python(desk, CUDA_FIRST, CUDA_VISIBLE_DEVICES="0,1").stdout == "0\n"
