"""Shares of a real GPU with their memory, what jobs use of it, and torch."""

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec

import pytest

from grass.cli.main import COMMANDS
from tests.gpu.gpu_home import GpuHome
from tests.support.patience import until

pytestmark = [pytest.mark.gpu, pytest.mark.daemon, pytest.mark.timeout(180)]

MIB, GIB = 2**20, 2**30
Note = Callable[[str, object], None]

TRAIN = """
import torch
device = torch.device("cuda")
model = torch.nn.Linear(512, 512).to(device)
best = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(50):
    loss = (model(torch.randn(256, 512, device=device)) ** 2).mean()
    best.zero_grad(); loss.backward(); best.step()
print(torch.cuda.device_count(), torch.cuda.get_device_name(0), loss.item())
"""


def test_two_halves_share_a_gpu_and_its_memory_and_a_third_waits(
    real: GpuHome,
) -> None:
    first, second = (real.hold("-g", "0.5", mib=512) for _ in range(2))
    (gpu, *others) = real.gpus()
    held = [one for one in [gpu, *others] if len(one["jobs"]) == 2]
    assert len(held) == 1
    shares = [one["reserved"] for one in held[0]["jobs"]]
    assert abs(shares[0] - shares[1]) < 2 * GIB
    assert sum(shares) > 0.8 * held[0]["memory"]["total"]
    for _ in range(2 * len(others)):
        real.hold("-g", "0.5", mib=64)
    third = real.enqueue("-g", "0.5", "--", "true")
    assert real.state(third) == "queued"
    real.ok("cancel", str(first))
    assert real.wait(third)["state"] == "succeeded"
    assert real.state(second) == "running"


def test_a_job_may_have_all_that_is_shown_as_free(
    real: GpuHome, record_property: Note
) -> None:
    memory = max((gpu["memory"] for gpu in real.gpus()), key=lambda one: one["free"])
    record_property("used of an idle GPU", f"{memory['strangers'] / MIB:.1f} MiB")
    job = real.hold(
        "--vram", f"{memory['free'] >> 20}M", mib=memory["free"] // MIB - 1024
    )
    assert real.state(job) == "running"
    more = f"{(memory['total'] >> 20) + 1}M"
    assert real.run("enqueue", "--vram", more, "--", "true").returncode == 6


def test_a_whole_gpu_has_no_job_beside_it(real: GpuHome) -> None:
    whole = [real.hold("-g", "1", mib=64) for _ in real.gpus()]
    beside = real.enqueue("--vram", "1G", "--", "true")
    assert real.state(beside) == "queued"
    real.ok("cancel", *map(str, whole))
    assert real.wait(beside)["state"] == "succeeded"


def test_a_job_sees_its_own_device_alone(real: GpuHome) -> None:
    job = real.hold("-g", "1", mib=64)
    unit = next(gpu["unit"] for gpu in real.gpus() if gpu["jobs"])
    assert f"holding {unit}" in real.logs(job)


@pytest.mark.skipif(
    find_spec("grass.worker.shell.usage.sampler") is None,
    reason="this version does not measure what strangers use",
)
def test_a_job_waits_for_memory_that_a_stranger_uses(
    real: GpuHome, stranger: Callable[[int], int]
) -> None:
    gpus = real.gpus()
    if len(gpus) > 1:
        pytest.skip("another GPU would have the memory")
    total = gpus[0]["memory"]["total"]
    pid = stranger(int(total * 0.5) >> 20)
    until(
        lambda: real.gpus()[0]["memory"]["strangers"],
        "unseen",
        lambda it: it > 10 * GIB,
    )
    asked = f"{int(total * 0.7) >> 20}M"
    job = real.enqueue("--vram", asked, "--", "true")
    reason = until(lambda: real.reason(job), "no reason", lambda it: "uses" in it)
    if not gpus[0]["pids_hidden"]:
        assert str(pid) in reason


@pytest.mark.skipif(
    "usage" not in COMMANDS, reason="this version keeps no history of what jobs use"
)
def test_what_a_job_uses_is_measured_and_kept(
    real: GpuHome, record_property: Note
) -> None:
    job = real.hold("-g", "1", mib=2048, busy=True)

    def used() -> str:
        return real.run("usage", str(job), "--json").stdout

    told = until(used, "no usage", lambda it: "gpu" in it)
    assert json.loads(told.splitlines()[0])
    real.ok("cancel", str(job))
    real.wait(job)
    record_property("usage of an ended job", f"{len(real.ok('usage', str(job)))} bytes")


@pytest.mark.skipif(find_spec("torch") is None, reason="there is no torch here")
def test_training_with_torch_runs_on_the_device_of_its_job(
    real: GpuHome, record_property: Note
) -> None:
    (real.desk / "train.py").write_text(TRAIN)
    jobs = [
        real.enqueue("-g", "0.5", "--", sys.executable, "train.py") for _ in range(2)
    ]
    for job in jobs:
        ended = real.wait(job)
        assert ended["state"] == "succeeded", real.logs(job)
        assert real.logs(job).startswith("1 ")
    record_property("torch trained on", real.logs(jobs[0]).strip())
