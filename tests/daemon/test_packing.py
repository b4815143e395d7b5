"""Jobs whose memory is learned, with a real daemon and GPUs that are made up."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.gpus import USE_GPU, FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = pytest.mark.daemon


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrassHome]:
    gpus = FakeGpus(tmp_path_factory.mktemp("gpus") / "gpus")
    gpus.device(0, name="NVIDIA H200", memory="80G")
    home = GrassHome(tmp_path_factory.mktemp("lasting"))
    home.environment.update(gpus.environment)
    gpus.program(home)
    home.ok("start", "--name", "desk")
    yield home
    home.end()


def line(go: Path, size: str = "4G") -> str:
    """Give a shell line that uses a GPU until a file is there, and then succeeds."""
    return f"use-gpu {size} & until [ -e {go} ]; do sleep 0.05; done; kill $!"


def profile(home: GrassHome, name: str) -> dict[str, Any]:
    found = json.loads(home.ok("profile", "show", name, "--json"))["profiles"]
    return dict(found[0])


def await_use(home: GrassHome, job: int) -> None:
    """Wait until it was measured that a job uses a GPU."""
    until(lambda: _used(home, job), "it was not measured")


GUEST = f"""
import os, sys
sys.path.insert(0, {str(USE_GPU.parent)!r})
import grass
from grass.client.client import Client
from use_gpu import announce

@grass.job
def long(word):
    job = Client().job(int(os.environ["GRASS_JOB_ID"]))
    print("long", word, job["allocation"]["vram"]["0"])

@long.profile
def short(word):
    announce("4G", "50")
    print("short", word)

long(sys.argv[1])
"""


def _used(home: GrassHome, job: int) -> bool:
    rows = json.loads(home.ok("show", str(job), "--json"))["usage"]
    return any(row["what"] == "gpu memory" and row["peak"] for row in rows)


def test_a_short_function_is_measured_and_then_the_long_one_runs(
    shared: GrassHome,
) -> None:
    path = shared.desk / "guest.py"
    path.write_text(GUEST)
    first = shared.shell(f"{sys.executable} guest.py a")
    assert first.stdout == "short a\nlong a 4.25\n", first.stderr
    known = profile(shared, "guest.py::long")
    assert known["why"] == "at most 4G in 1 run, and 256M to spare"
    again = shared.shell(f"{sys.executable} guest.py b")
    assert again.stdout == "long b 4.25\n", again.stderr
    # What is known of the function holds for a command that runs it.
    command = f"{sys.executable} guest.py c"
    each = shared.shell(f"grass run --each '{command}'")
    (printed,) = each.stdout.splitlines()
    assert printed.endswith("long c 4.25"), each.stderr
    assert profile(shared, command)["runs"] >= 1


def test_a_run_that_does_not_end_makes_room_once_its_memory_is_flat(
    shared: GrassHome, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    asked = ["--vram", "auto", "-c", "0", "--type", "endless", "--", line(end, "6G")]
    first, second = (shared.enqueue(*asked) for _ in range(2))
    await_use(shared, first)
    assert shared.state(second) == "queued"
    await_use(shared, second)
    assert shared.client.job(first)["allocation"] == {"vram": {"0": 6.3}}
    assert profile(shared, "endless")["provisional"]
    shared.ok("restart")
    third = shared.enqueue(*asked)
    await_use(shared, third)
    end.touch()
    shared.wait(first, second, third)
    assert not profile(shared, "endless")["provisional"]


def test_one_is_measured_and_the_rest_is_packed(
    shared: GrassHome, tmp_path: Path
) -> None:
    go, end = tmp_path / "go", tmp_path / "end"
    asked = ["--vram", "auto", "-c", "0", "--type", "fit", "--"]
    first = shared.enqueue(*asked, line(go))
    await_use(shared, first)
    others = [shared.enqueue(*asked, line(end)) for _ in range(3)]
    assert shared.client.job(first)["allocation"]["gpu"] == {"0": 1}
    assert f"profile of `fit`, which job {first}" in shared.reason(others[0])
    assert "vram auto: nothing is known yet" in shared.ok("explain", str(others[0]))
    go.touch()
    for job in others:
        await_use(shared, job)
        assert shared.client.job(job)["allocation"]["vram"] == {"0": 4.25}
    told = "NVIDIA H200: 4.25G (at most 4G in 1 run, and 256M to spare)"
    assert shared.client.job(others[0])["learned"] == [told]
    assert told in shared.ok("show", str(others[0]))
    end.touch()
    shared.wait(*others)
    known = profile(shared, "fit")
    assert (known["model"], known["runs"]) == ("NVIDIA H200", 4)
    assert known["why"] == "at most 4G in 4 runs, and 256M to spare"


def test_a_setting_limits_the_jobs_of_a_gpu(tmp_path: Path) -> None:
    gpus = FakeGpus(tmp_path / "gpus")
    gpus.device(0, name="NVIDIA H200", memory="80G")
    home = GrassHome(tmp_path)
    home.environment.update(gpus.environment, GRASS_GPU_JOBS="1")
    try:
        first = home.enqueue("--vram", "1G", "--", "sleep", "60")
        second = home.enqueue("--vram", "1G", "--", "true")
        home.await_event("started", first)
        assert "gpu 0: at most 1 job at a time (`gpu.jobs`)" in home.reason(second)
        home.ok("cancel", str(first))
        home.wait(second)
    finally:
        home.end()


def test_a_setting_keeps_learned_jobs_off_a_gpu_that_is_busy(tmp_path: Path) -> None:
    gpus = FakeGpus(tmp_path / "gpus")
    gpus.device(0, name="NVIDIA H200", memory="80G", utilization=95)
    home = GrassHome(tmp_path)
    home.environment.update(gpus.environment, GRASS_GPU_BUSY="90%")
    try:
        with gpus.stranger(0, "1M"):
            home.ok("start")
            job = home.enqueue("--vram", "auto", "--", "true")
            busy = "waits for a GPU that is not busy; gpu 0: too busy (`gpu.busy`)"
            until(lambda: home.reason(job) == busy, "the GPU is not busy")
            home.wait(home.enqueue("--vram", "1G", "--", "true"))
            assert home.state(job) == "queued"
        # The stranger has left, which is seen by the next look.
        home.wait(job)
    finally:
        home.end()
