"""Jobs are admitted by what is really free of the GPUs."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = pytest.mark.daemon


@pytest.fixture
def gpus(tmp_path: Path) -> FakeGpus:
    made = FakeGpus(tmp_path / "gpus")
    # The driver reserves some for itself, and uses some without a process.
    made.device(0, memory="80G", reserved="650M", used="5M")
    return made


@pytest.fixture
def desk(tmp_path: Path, gpus: FakeGpus) -> Iterator[GrassHome]:
    home = GrassHome(tmp_path)
    home.environment.update(gpus.environment)
    gpus.program(home)
    home.ok("start", "--name", "desk")
    yield home
    home.end()


def worker(home: GrassHome) -> Any:
    (found,) = home.document()["workers"]
    return found


def looked(home: GrassHome, field: str) -> None:
    """Have the daemon look, and wait until it tells something of the GPU."""
    home.ok("gpu")
    until(lambda: worker(home)[field], f"no {field}", lambda told: "0" in told)


def test_a_stranger_delays_what_waits_by_name_and_touches_nothing_that_runs(
    desk: GrassHome, gpus: FakeGpus
) -> None:
    running = desk.enqueue("--vram", "20G", "--", "use-gpu", "10G", "100")
    desk.await_event("started", running)
    with gpus.stranger(0, "50G") as pid:
        looked(desk, "strangers")
        waiting = desk.enqueue("--vram", "20G", "--", "true")
        why = until(
            lambda: desk.reason(waiting), "no reason", lambda text: str(pid) in text
        )
        assert f"sleep (pid {pid}" in why
        assert "uses 50G of gpu 0" in why
        assert desk.state(running) == "running"
        now = worker(desk)
        assert now["withheld"]["vram"]["0"] == 50
        assert now["strangers"]["0"][0].endswith(": 50G")
    assert desk.wait(waiting)["state"] == "succeeded"
    assert desk.state(running) == "running"
    desk.ok("cancel", str(running))


def test_a_job_may_ask_for_all_that_is_shown_as_free_of_an_idle_card(
    desk: GrassHome,
) -> None:
    (told,) = json.loads(desk.ok("gpu", "--json"))["workers"]
    exactly = f"{told['gpus'][0]['memory']['free'] // 2**20}M"
    shown = desk.ok("gpu").partition(" free ")[2].split()[0]
    assert shown == "78.8G"
    for amount in (exactly, shown):
        job = desk.enqueue("--vram", amount, "--", "true")
        assert desk.wait(job)["state"] == "succeeded"


def test_more_than_a_card_has_for_jobs_is_refused(desk: GrassHome) -> None:
    refused = desk.run("enqueue", "--vram", "79.3G", "--", "true")
    assert refused.returncode == 6
    assert "asked 79.3G, the largest GPU of queue `default` has 78.9G" in refused.stderr
    assert "there are 1 NVIDIA Stand-in of 78.9G" in refused.stderr


def test_a_start_onto_memory_that_is_gone_is_returned_and_waits(
    desk: GrassHome, gpus: FakeGpus
) -> None:
    with gpus.stranger(0, "70G"):
        # The daemon looked before the stranger came, and looks rarely while idle; but
        # once more before a start, if that was more than a second ago.
        time.sleep(1.5)
        job = desk.enqueue("-g", "1", "--", "true")
        until(lambda: desk.reason(job), "no reason", lambda text: "uses 70G" in text)
        assert desk.state(job) == "queued"
    desk.ok("gpu")
    assert desk.wait(job)["state"] == "succeeded"


def test_two_jobs_of_the_same_moment_do_not_get_the_same_memory(
    desk: GrassHome,
) -> None:
    lines = [desk.enqueue("--vram", "50G", "--", "sleep", "100") for _ in range(2)]
    until(lambda: desk.states(lines), "none runs", lambda found: "running" in found)
    assert desk.states(lines) == ["running", "queued"]
    assert "job 1 holds 50G of gpu 0" in desk.reason(lines[1])
    desk.ok("cancel", "--yes", *map(str, lines))


def test_a_faulty_gpu_gets_no_jobs_until_it_works_and_that_was_acknowledged(
    desk: GrassHome, gpus: FakeGpus
) -> None:
    gpus.fault(0, "lost")
    looked(desk, "faults")
    job = desk.enqueue("-g", "1", "--", "true")
    assert desk.state(job) == "queued"
    gpus.mend(0)
    desk.ok("resume", "gpu:0")
    assert desk.wait(job)["state"] == "succeeded"


def test_gpus_that_cannot_be_read_say_so_and_jobs_without_them_run(
    desk: GrassHome, gpus: FakeGpus
) -> None:
    gpus.hang()
    looked(desk, "faults")
    waiting = desk.enqueue("-g", "1", "--", "true")
    assert desk.wait(desk.enqueue("--", "true"))["state"] == "succeeded"
    assert desk.state(waiting) == "queued"
    gpus.work()
    assert desk.wait(waiting)["state"] == "succeeded"
