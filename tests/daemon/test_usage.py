"""What jobs use, with a real daemon, real processes and made-up GPUs."""

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.gpus import FakeGpus
from tests.support.homes import Document, GrassHome
from tests.support.patience import until

pytestmark = pytest.mark.daemon

GIB = 2**30


@pytest.fixture
def gpus(tmp_path: Path) -> FakeGpus:
    made = FakeGpus(tmp_path / "gpus")
    made.device(0, memory="80G", utilization=55)
    return made


@pytest.fixture
def desk(tmp_path: Path, gpus: FakeGpus) -> Iterator[GrassHome]:
    home = GrassHome(tmp_path)
    home.environment.update(gpus.environment)
    gpus.program(home)
    home.ok("start", "--name", "desk")
    yield home
    home.end()


def used(home: GrassHome, job: int) -> dict[str, Document]:
    """Give what a job uses, by what is measured."""
    document = json.loads(home.ok("show", str(job), "--json"))
    return {one["what"]: one for one in document["usage"]}


def known(home: GrassHome, job: int, what: str, field: str) -> Any:
    """Give a measurement as soon as there is one."""
    return until(
        lambda: used(home, job).get(what, {}).get(field),
        f"no {field} of {what}",
        lambda seen: seen is not None,
    )


def test_what_was_asked_given_and_used_is_side_by_side(desk: GrassHome) -> None:
    words = ("-g", "0.5", "--vram", "10G", "-m", "2G", "-c", "1")
    line = "while :; do :; done & exec use-gpu 4G 30"
    job = desk.enqueue(*words, line)

    known(desk, job, "gpu memory", "peak")
    until(lambda: used(desk, job).get("cpu", {}).get("peak"), "no core was used")
    now = used(desk, job)

    gpu = now["gpu memory"]
    assert (gpu["unit"], gpu["asked"], gpu["given"]) == ("0", 10 * GIB, 10 * GIB)
    assert gpu["now"] == gpu["peak"] == 4 * GIB
    busy = now["gpu utilization"]
    assert (busy["asked"], busy["now"], busy["peak"]) == (50, 30, 30)
    memory = now["memory"]
    assert memory["asked"] == memory["given"] == 2 * GIB
    assert 0 < memory["now"] <= memory["peak"]
    assert now["cpu"]["given"] == 1
    assert now["cpu"]["peak"] > 0
    columns = "id,used,memory,cores,gpu-memory,gpu-peak,gpu-use"
    assert "4.0 GiB" in desk.ok("show", str(job), "--columns", columns)
    assert "gpu 0 utilization  50 %" in desk.ok("explain", str(job))

    desk.ok("cancel", str(job))
    closing = desk.run("wait", str(job)).stderr

    assert "gpu 0 memory 4.0 GiB of 10.0 GiB" in closing
    document = json.loads(desk.ok("show", str(job), "--json"))
    assert document["attempts"][0]["peak"]["gpus"]["0"]["memory"] == 4 * GIB
    assert all(one["now"] is None for one in document["usage"])


def test_the_history_goes_on_over_a_restart_and_goes_with_the_job(
    desk: GrassHome,
) -> None:
    job = desk.enqueue("-g", "1", "use-gpu", "4G", "30")
    known(desk, job, "cpu", "peak")
    # The daemon is killed only when something is on disk.
    points = until(lambda: history(desk, job), "no history")

    desk.kill_daemon()
    desk.ok("start")

    until(lambda: len(history(desk, job)) > len(points) + 3, "it does not go on")
    desk.ok("cancel", str(job))
    rows = history(desk, job)
    assert [float(one["elapsed_s"]) for one in rows] == sorted(
        float(one["elapsed_s"]) for one in rows
    )
    assert max(int(one["gpu_0_memory"]) for one in rows) == 4 * GIB
    assert {float(one["gpu_0_utilization"]) for one in rows[-3:]} == {30.0}
    told = json.loads(desk.ok("usage", str(job), "--json"))
    assert len(told["points"]) == len(rows)
    assert "GPU 0 MEMORY" in desk.ok("usage", str(job))

    files = kept(desk)
    desk.ok("remove", str(job))

    until(lambda: not any(map(os.path.exists, files)), "it is still there")


def kept(home: GrassHome) -> list[Path]:
    """Find the files of histories; there are some."""
    found = list(home.folder.rglob("*.usage"))
    assert found
    return found


def history(home: GrassHome, job: int) -> list[dict[str, str]]:
    ran = home.run("usage", "--csv", str(job))
    return list(csv.DictReader(ran.stdout.splitlines())) if ran.returncode == 0 else []


def test_a_job_with_output_of_its_own_leaves_no_history_behind(
    desk: GrassHome, tmp_path: Path
) -> None:
    job = desk.enqueue("--output", str(tmp_path / "mine.log"), "sleep", "1000")
    until(lambda: history(desk, job), "no history")
    desk.ok("cancel", str(job))

    files = kept(desk)
    desk.ok("remove", str(job))

    until(lambda: not any(map(os.path.exists, files)), "it is still there")
    assert (tmp_path / "mine.log").exists()
    assert not (tmp_path / "mine.usage").exists()


def test_a_container_without_pids_is_measured_by_difference_and_said(
    desk: GrassHome, gpus: FakeGpus
) -> None:
    job = desk.enqueue("-g", "1", "sleep", "1000")
    gpus.process(0, 4_000_000, "6G", always=1)

    memory = until(
        lambda: used(desk, job).get("gpu memory", {}).get("now"),
        "nothing was measured",
        lambda size: size == 6 * GIB,
    )

    assert memory == 6 * GIB
    assert "by difference" in desk.ok("show", str(job))


def test_the_history_of_a_gpu_is_kept_without_a_job(desk: GrassHome) -> None:
    # What has gathered is written when the daemon ends.
    def told() -> str:
        desk.restart()
        return desk.run("usage", "gpu:0").stdout

    text = until(told, "no history")

    assert "GPU 0 MEMORY" in text
    assert "55 %" in text


def test_a_job_that_was_not_measured_is_said_to_be_so(desk: GrassHome) -> None:
    job = desk.enqueue("true")
    desk.wait(job)

    ran = desk.run("usage", str(job))

    assert ran.returncode == 4
    assert f"nothing of job {job} was measured" in ran.stderr
    assert "USAGE" not in desk.ok("show", str(job))
