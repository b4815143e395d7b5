"""Want of memory is a cause, with a real daemon, real processes and made-up GPUs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = pytest.mark.daemon

GIB = 2**30
DIES = "echo torch.OutOfMemoryError: CUDA out of memory. Tried to allocate; exit 1"


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


def test_a_job_without_gpu_memory_says_so_and_is_retried_with_more(
    desk: GrassHome,
) -> None:
    job = desk.enqueue("--vram", "8G", "--retries", "2", "--", "sh", "-c", DIES)
    ended = desk.wait(job)
    assert ended["state"] == "failed"
    attempts = ended["attempts"]
    assert [one["allocation"]["vram"]["0"] for one in attempts] == [8, 12, 79.5]
    assert {one["cause"] for one in attempts} == {"out-of-gpu-memory"}
    assert attempts[0]["reason"] == "out of GPU memory (asked 8 GiB)"
    said = desk.run("wait", str(job)).stderr
    assert said.startswith(
        f"grass: job {job} failed: out of GPU memory (asked 79.5 GiB"
    )


def test_a_neighbour_that_overran_is_named(desk: GrassHome) -> None:
    hog = desk.enqueue("--vram", "8G", "--", "use-gpu", "30G")
    until(
        lambda: desk.document()["workers"][0]["withheld"].get("vram", {}),
        "the overrun was not seen",
        lambda told: told.get("0", 0) > 20,
    )
    job = desk.enqueue("--vram", "8G", "--retries", "1", "--", "sh", "-c", DIES)
    ended = desk.wait(job)
    assert (
        ended["reason"] == f"out of GPU memory: job {hog} on gpu 0 used 30 GiB of 8 GiB"
    )
    given = [one["allocation"]["vram"]["0"] for one in ended["attempts"]]
    assert given == [8, 8, 8, 8]
    assert desk.state(hog) == "running"


def test_an_exit_while_there_is_no_daemon_has_its_cause(
    desk: GrassHome, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    line = f"until test -e {gate}; do sleep 0.05; done; {DIES}"
    job = desk.enqueue("--vram", "8G", "--", "sh", "-c", line)
    desk.await_event("started", job)
    output = Path(until(lambda: desk.client.job(job)["output"], "no output", bool))
    desk.kill_daemon()
    gate.touch()
    until(lambda: output.read_text(), "no end", lambda text: "CUDA" in text)
    desk.ok("start")
    assert desk.wait(job)["attempts"][0]["cause"] == "out-of-gpu-memory"
