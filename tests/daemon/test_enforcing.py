"""Jobs are held to what they asked for, with real processes and made-up GPUs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon


@pytest.fixture
def gpus(tmp_path: Path) -> FakeGpus:
    made = FakeGpus(tmp_path / "gpus")
    made.device(0, memory="80G")
    return made


@pytest.fixture
def desk(tmp_path: Path, gpus: FakeGpus) -> Iterator[GrassHome]:
    home = GrassHome(tmp_path)
    home.environment.update(gpus.environment)
    gpus.program(home)
    home.ok("start", "--name", "desk")
    yield home
    home.end()


def test_a_job_that_uses_too_much_is_warned_and_stopped(desk: GrassHome) -> None:
    desk.ok("create-queue", "--enforce=stop", "strict")
    neighbour = desk.enqueue("--vram", "8G", "--", "use-gpu", "8G")
    job = desk.enqueue("strict", "--vram", "8G", "--", "use-gpu", "30G")
    warned = desk.await_event("overran", job)
    assert warned["data"] == {"unit": "gpu:0", "used": "30 GiB", "asked": "8 GiB"}
    ended = desk.wait(job)
    assert ended["state"] == "failed"
    reason = "out of GPU memory: stopped, as it used 30 GiB of 8 GiB on gpu 0"
    assert ended["reason"] == reason
    assert ended["attempts"][0]["cause"] == "out-of-gpu-memory"
    assert desk.state(neighbour) == "running"


def test_libraries_are_told_their_share(desk: GrassHome) -> None:
    show = (
        "--",
        "sh",
        "-c",
        "echo $PYTORCH_ALLOC_CONF $XLA_PYTHON_CLIENT_MEM_FRACTION",
    )
    told = desk.enqueue("-g", "0.5", "--enforce", *show)
    plain = desk.enqueue("-g", "0.5", *show)
    desk.wait(told, plain)
    assert desk.logs(told).startswith("per_process_memory_fraction:0.4")
    assert desk.logs(plain).strip() == ""
