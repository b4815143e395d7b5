"""What grass tells of a real GPU, of strangers on it, and of the machine."""

import json
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.gpu.gpu_home import GpuHome
from tests.support.patience import until

pytestmark = [pytest.mark.gpu, pytest.mark.daemon, pytest.mark.timeout(180)]

MIB = 2**20
Note = Callable[[str, object], None]


def smi(field: str) -> list[str]:
    """Ask NVIDIA's own tool."""
    words = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    return [line.strip() for line in ran.stdout.splitlines()]


def test_gpus_are_those_that_the_driver_tells(
    real: GpuHome, record_property: Note
) -> None:
    found = real.gpus()
    assert [gpu["uuid"] for gpu in found] == smi("uuid")
    assert [gpu["name"] for gpu in found] == smi("name")
    for gpu, total in zip(found, smi("memory.total"), strict=True):
        memory = gpu["memory"]
        parts = [memory[part] for part in ("jobs", "reserved", "strangers", "free")]
        assert sum(parts) == memory["total"]
        assert 0.9 < memory["total"] / (int(total) * MIB) <= 1.0
        assert gpu["fault"] is None
        assert 0 < (gpu["temperature"] or 40) < 120
        assert gpu["power_w"] is None or gpu["power_w"] > 0
    began_s = time.monotonic()
    said = real.ok("gpu")
    record_property("`grass gpu`", f"{1000 * (time.monotonic() - began_s):.0f} ms")
    assert found[0]["uuid"] in said
    assert len(real.ok("gpu", "--oneline").splitlines()) == 1 + len(found)


def test_a_stranger_costs_its_memory_and_is_named(
    real: GpuHome, stranger: Callable[[int], int], record_property: Note
) -> None:
    before = real.gpus()[0]["memory"]["strangers"]
    pid = stranger(2048)
    gpu = real.gpu_with(pid)
    grown = gpu["memory"]["strangers"] - before
    assert 2048 * MIB <= grown < 4096 * MIB
    record_property("a CUDA context takes", f"{(grown >> 20) - 2048} MiB")
    record_property("pids on the GPU are told", "no" if gpu["pids_hidden"] else "yes")
    if not gpu["pids_hidden"]:
        (one,) = [one for one in gpu["processes"] if one["pid"] == pid]
        assert one["job"] is None
        assert one["command"].startswith("python")
        assert f"pid {pid}" in real.ok("gpu")


def test_a_job_is_told_apart_from_strangers(real: GpuHome) -> None:
    job = real.hold("-g", "0.5", "--name", "holder", mib=1024)
    gpu = real.gpu_with(None)
    assert [one["job"] for one in gpu["jobs"]] == [job]
    if not gpu["pids_hidden"]:
        assert gpu["memory"]["jobs"] >= 1024 * MIB
        assert [one["job"] for one in gpu["processes"] if one["job"]] == [job]
    assert gpu["jobs"][0]["reserved"] > 1024 * MIB
    real.ok("cancel", str(job))


def test_a_busy_gpu_is_seen_to_be_busy(real: GpuHome, record_property: Note) -> None:
    job = real.hold("-g", "1", mib=4096, busy=True)
    busy = until(
        lambda: real.gpus()[0]["utilization"], "never busy", lambda it: it and it > 20
    )
    record_property("utilisation of a busy job", f"{busy} %")
    real.ok("cancel", str(job))


def test_doctor_knows_driver_and_gpus(real: GpuHome, record_property: Note) -> None:
    ran = real.run("doctor", "--json")
    findings = {one["check"]: one for one in json.loads(ran.stdout)["findings"]}
    assert findings["nvml"]["status"] == "ok"
    assert smi("name")[0] in findings["nvml"]["finding"]
    wrong = [one for one in findings.values() if one["status"] == "wrong"]
    assert ran.returncode == (1 if wrong else 0)
    for one in findings.values():
        if one["check"] in ("home", "daemon"):
            continue  # These are the test's own.
        record_property(f"doctor: {one['check']}", f"{one['status']}: {one['finding']}")


def test_no_gpus_are_managed_if_none_is_wanted(real: GpuHome) -> None:
    try:
        assert "Managing no GPUs" in real.ok("restart", "--gpus", "none")
        assert real.gpus() == []
        uuid = smi("uuid")[0]
        real.ok("restart", "--gpus", uuid[:12])
        assert [gpu["uuid"] for gpu in real.gpus()] == [uuid]
    finally:
        real.ok("restart", "--gpus", "all")
