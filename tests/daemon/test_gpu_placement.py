"""Which GPUs jobs get of a real daemon, and what they learn of them."""

import socket
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from grass.errors import NotFound
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = pytest.mark.daemon

LIST = "there are 2 NVIDIA H200 of 79.5G, 2 Tesla T4 of 14.7G"


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> FakeGpus:
    """Two sorts of GPUs, of which 1 and 3 have nothing between them but NVLink."""
    gpus = FakeGpus(tmp_path_factory.mktemp("gpus") / "gpus")
    for number in (0, 1):
        gpus.device(number, name="NVIDIA H200", memory="80G")
    for number in (2, 3):
        gpus.device(number, name="Tesla T4", memory="15G")
    gpus.pair(1, 3, "nvlink")
    return gpus


@pytest.fixture(scope="module")
def lasting(
    tmp_path_factory: pytest.TempPathFactory, four: FakeGpus
) -> Iterator[GrassHome]:
    home = GrassHome(tmp_path_factory.mktemp("lasting"))
    home.environment.update(four.environment)
    home.ok("start", "--name", "desk")
    yield home
    home.end()


def given(home: GrassHome, *options: str) -> str:
    """Run a job that tells which GPUs it sees."""
    job = home.enqueue(*options, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES")
    home.wait(job)
    return home.logs(job).strip()


def test_a_model_and_a_policy_choose_the_gpu(shared: GrassHome) -> None:
    assert given(shared, "-g", "1", "--gpu-model", "t4") == "2"
    assert given(shared, "-g", "2", "--gpu-model", "T4|V100") == "2,3"
    holding = shared.enqueue("-g", "0.25", "--", "sleep", "600")
    assert given(shared, "-g", "0.25") == "0"
    assert given(shared, "-g", "0.25", "--policy", "spread") == "1"
    assert given(shared, "--vram", "4G") == "1"
    assert given(shared, "--vram", "4G", "--policy", "pack") == "2"
    shared.ok("cancel", str(holding))
    shared.wait(holding)


def test_several_gpus_are_the_nearest(shared: GrassHome) -> None:
    until(lambda: _neighbours(shared), "it is not told what is near")
    assert given(shared, "-g", "2") == "1,3"


def _neighbours(home: GrassHome) -> object:
    """Look at the GPUs, and return which are connected to GPU 1."""
    home.ok("gpu")
    [worker] = home.document()["workers"]
    return worker["devices"]["gpu"]["1"].get("nvlink")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["-g", "1", "--gpu-model", "A100"],
            f"no GPU of queue `default` matches `A100`; {LIST}",
        ),
        (
            ["--vram", "100G"],
            f"vram: asked 100G, the largest GPU of queue `default` has 79.5G; {LIST}",
        ),
    ],
)
def test_what_no_gpu_could_meet_is_refused_with_a_list_of_them(
    shared: GrassHome, options: list[str], said: str
) -> None:
    done = shared.run("enqueue", *options, "--", "true")
    assert (done.returncode, done.stdout) == (6, "")
    assert said in done.stderr


def test_options_that_mean_nothing_are_refused(shared: GrassHome) -> None:
    for options, said in (
        (["--gpu-model", "T4"], "--gpu-model goes with a request for a GPU"),
        (["-g", "1", "--gpu-model", "("], "--gpu-model `(` is no pattern"),
        (["--policy", "most"], "--policy `most` is not known"),
    ):
        done = shared.run("enqueue", *options, "--", "true")
        assert done.returncode == 2
        assert said in done.stderr


def test_a_waiting_job_is_given_another_model(shared: GrassHome) -> None:
    job = shared.enqueue("-g", "1", "--gpu-model", "T4", "--hold", "--", "true")
    shared.ok("edit", str(job), "--gpu-model", "h200", "--policy", "spread")
    document = shared.client.job(job)
    assert (document["gpu_model"], document["policy"]) == ("h200", "spread")
    assert "GPU model   h200" in shared.ok("show", str(job))
    shared.ok("edit", str(job), "--gpu-model", "none")
    assert shared.client.job(job)["gpu_model"] is None
    refused = shared.run("edit", str(job), "--gpu-model", "A100")
    assert (refused.returncode, LIST in refused.stderr) == (6, True)
    shared.ok("cancel", str(job))


LISTEN = """
import os, socket, time
address, port = os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
server = socket.create_server((address, int(port)))
print(port, flush=True)
time.sleep(600)
"""


def listening(home: GrassHome, count: int) -> list[int]:
    """Start jobs that listen on their ports, and return the ports."""
    words = ("--vram", "1G", "-c", "0", "--raw", "--", sys.executable, "-c", LISTEN)
    jobs = [home.enqueue(*words) for _ in range(count)]
    return [int(until(partial(printed, home, job), "no port")) for job in jobs]


def printed(home: GrassHome, job: int) -> str:
    """Return what a job has printed; nothing before its worker has the file."""
    try:
        return home.logs(job)
    except NotFound:
        return ""


def test_every_job_with_a_gpu_has_a_port_of_its_own_also_after_a_restart(
    cold: GrassHome, gpus: FakeGpus
) -> None:
    gpus.device(0)
    cold.environment.update(gpus.environment)
    cold.ok("start")
    ports = listening(cold, 3)
    cold.restart()
    ports += listening(cold, 2)
    assert len(set(ports)) == 5
    for port in ports:
        socket.create_connection(("127.0.0.1", port)).close()
    without = cold.enqueue("--", "sh", "-c", "echo ${MASTER_PORT-none}")
    cold.wait(without)
    assert cold.logs(without) == "none\n"


def test_mig_instances_are_seen_by_their_uuid(cold: GrassHome, gpus: FakeGpus) -> None:
    gpus.device(0)
    gpus.device(1)
    gpus.mig(1, 0)
    gpus.mig(1, 2)
    cold.environment.update(gpus.environment)
    cold.ok("start")
    first = given(cold, "-g", "1", "--gpu-model", "MIG")
    assert first == "MIG-00000001-0000-0000-0000-000000000000"
    assert given(cold, "-g", "1") == "GPU-00000000-0000-0000-0000-000000000000"
