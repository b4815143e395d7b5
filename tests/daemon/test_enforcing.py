"""Jobs are held to what they asked for, with real processes and made-up GPUs."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.processes import alive

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


CONTROL = """
test "$1" = -f || exit 1
test -e "$REFUSES" && exit 1
echo $CUDA_VISIBLE_DEVICES > "$CUDA_MPS_PIPE_DIRECTORY/sees"
echo $$ > "$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
exec sleep 1000
"""
TELLS = (
    "echo $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT;"
    " cat $CUDA_MPS_PIPE_DIRECTORY/sees"
)


@pytest.fixture
def mps_desk(tmp_path: Path, gpus: FakeGpus) -> Iterator[GrassHome]:
    """Have a home with a stand-in for MPS; its sockets need a short path."""
    with tempfile.TemporaryDirectory(prefix="g-") as folder:
        home = GrassHome(tmp_path, Path(folder) / "h")
        home.environment.update(gpus.environment)
        gpus.program(home)
        refuses = tmp_path / "refuses"
        home.add_program(
            "nvidia-cuda-mps-control", CONTROL.replace("$REFUSES", str(refuses))
        )
        home.ok("start", "--name", "desk")
        yield home
        home.end()


def control_pid(home: GrassHome) -> int:
    return int((home.folder / "mps/0/pipe/nvidia-cuda-mps-control.pid").read_text())


def test_mps_runs_while_enforced_jobs_do_and_outlives_the_daemon(
    mps_desk: GrassHome,
) -> None:
    desk = mps_desk
    (worker,) = desk.document()["workers"]
    assert worker["enforces"] == ["mps", "gpu-memory"]
    first = desk.enqueue("-g", "0.25", "--enforce", "--", "sleep", "1000")
    desk.await_event("started", first)
    second = desk.enqueue("-g", "0.25", "--enforce", "--", "sh", "-c", TELLS)
    desk.wait(second)
    caps, sees = desk.logs(second).splitlines()
    assert caps.startswith("25 0=")
    assert sees.startswith("GPU-00000000")
    pid = control_pid(desk)
    assert alive(pid)

    desk.replace_daemon()
    assert desk.state(first) == "running"
    assert alive(pid)

    desk.ok("cancel", str(first))
    until(lambda: alive(pid), "MPS was not stopped", lambda lives: not lives)


def test_where_mps_does_not_start_jobs_run_without_it(
    mps_desk: GrassHome, tmp_path: Path
) -> None:
    (tmp_path / "refuses").touch()
    line = "echo pipes=$CUDA_MPS_PIPE_DIRECTORY"
    job = mps_desk.enqueue("-g", "0.5", "--enforce", "--", "sh", "-c", line)
    assert mps_desk.wait(job)["state"] == "succeeded"
    assert mps_desk.logs(job) == "pipes=\n"
    assert "mps.failed" in mps_desk.log()


def test_a_fault_reaches_neighbours_and_mps_is_started_anew(
    mps_desk: GrassHome, tmp_path: Path
) -> None:
    desk, gate = mps_desk, tmp_path / "gate"
    fault = "echo CUDA error: an illegal memory access was encountered; exit 1"
    quarter = ("-g", "0.25", "--enforce")
    line = f"until test -e {gate}; do sleep 0.05; done; {fault}"
    victim = desk.enqueue(
        *quarter,
        "--retries",
        "1",
        "--",
        "sh",
        "-c",
        f"test $GRASS_ATTEMPT = 1 && {line}",
    )
    desk.await_event("started", victim)
    culprit = desk.enqueue(*quarter, "--", "sh", "-c", fault)
    desk.wait(culprit)
    before = control_pid(desk)
    gate.touch()
    found = desk.wait(victim)["attempts"]
    assert found[0]["reason"] == f"GPU fault of job {victim} or {culprit}"
    assert (found[0]["cause"], len(found)) == ("gpu-fault", 2)
    assert control_pid(desk) != before
