"""`grass gpu` with a real daemon, real processes and made-up GPUs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gpus import FakeGpus
from tests.support.homes import Document, GrassHome
from tests.support.machines import Machine
from tests.support.patience import until

pytestmark = pytest.mark.daemon

GIB = 2**30


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> FakeGpus:
    gpus = FakeGpus(tmp_path_factory.mktemp("gpus") / "gpus")
    gpus.device(0, name="Card A", memory="80G", reserved="1G", utilization=87)
    gpus.device(1, name="Card B", memory="40G")
    return gpus


@pytest.fixture(scope="module")
def lasting(
    tmp_path_factory: pytest.TempPathFactory, two: FakeGpus
) -> Iterator[GrassHome]:
    home = GrassHome(tmp_path_factory.mktemp("lasting"))
    home.environment.update(two.environment)
    two.program(home)
    home.ok("start", "--name", "desk")
    yield home
    home.end()


def gpus_of(home: GrassHome) -> list[Document]:
    (worker,) = json.loads(home.ok("gpu", "--json"))["workers"]
    return list(worker["gpus"])


def test_memory_has_four_parts_and_everyone_on_it_is_named(
    shared: GrassHome, two: FakeGpus
) -> None:
    job = shared.enqueue("-g", "0.5", "--vram", "10G", "--name", "fit", "use-gpu", "4G")
    until(lambda: shared.run("logs", str(job)).stdout, "no gpu")
    with two.stranger(0, "3G") as stranger:
        first, second = gpus_of(shared)
        assert first["uuid"].startswith("GPU-00000000")
        assert (first["utilization"], first["temperature"]) == (87, 40)
        sizes = {"total": 78.5, "jobs": 4, "reserved": 6, "strangers": 3, "free": 65.5}
        assert first["memory"] == {part: of * GIB for part, of in sizes.items()}
        by_job = {one["job"]: one for one in first["processes"]}
        assert by_job[None]["pid"] == stranger
        assert by_job[None]["command"] == "sleep"
        assert by_job[job]["memory"] == 4 * GIB
        assert by_job[job]["user"] == by_job[None]["user"] != ""
        assert first["jobs"][0]["name"] == "fit"
        assert second["memory"]["free"] == 39.5 * GIB
        said = shared.ok("gpu")
        assert f"stranger  sleep  pid {stranger}" in said
        assert "jobs 4G  reserved 6G  strangers 3G  free 65.5G" in said
        assert "job 1" in shared.ok("gpu", "--oneline").splitlines()[1]


def test_a_job_that_has_not_allocated_yet_is_there_with_what_it_reserved(
    shared: GrassHome,
) -> None:
    job = shared.enqueue("-g", "1", "--name", "slow", "--", "sleep", "1000")
    until(lambda: shared.state(job), "no start", lambda state: state == "running")
    held = [one for gpu in gpus_of(shared) for one in gpu["jobs"]]
    assert [(one["job"], one["used"]) for one in held] == [(job, 0)]
    assert held[0]["gpu"] == 1
    assert held[0]["reserved"] >= 39 * GIB


def test_a_fault_is_told(shared: GrassHome, two: FakeGpus) -> None:
    two.fault(1, "lost")
    try:
        until(lambda: gpus_of(shared)[1]["fault"], "no fault", bool)
        lost = gpus_of(shared)[1]
        assert lost["fault"]["reason"] in shared.ok("gpu")
    finally:
        two.mend(1)
        until(lambda: gpus_of(shared)[1]["fault"]["works_since"], "it stays lost", bool)
        shared.ok("resume", "gpu:1")


def test_without_a_gpu_the_next_step_is_told(cold: GrassHome, tmp_path: Path) -> None:
    cold.environment.update(FakeGpus(tmp_path / "none").environment)
    assert "grass doctor" in cold.ok("gpu")
    assert json.loads(cold.ok("gpu", "--json"))["workers"][0]["gpus"] == []


def test_gpus_of_another_machine_are_shown_there_and_here(
    machine: Machine, broker: GrassHome, gpus: FakeGpus
) -> None:
    gpus.device(0, name="Card C")
    farm = machine("farm")
    farm.environment.update(gpus.environment)
    line = broker.ok("token", "new").strip().splitlines()[-1]
    farm.ok(*line.split()[1:], "--name", "farm")
    workers = json.loads(broker.ok("gpu", "--json"))["workers"]
    found = {one["name"]: [gpu["name"] for gpu in one["gpus"]] for one in workers}
    assert found["farm"] == ["Card C"]
    assert "farm gpu 0  Card C" in farm.ok("gpu", "--broker", "local")
    farm.ok("stop")
    ran = broker.run("gpu")
    assert "farm gpu 0  Card C" in ran.stdout
    assert "farm: worker `farm` is unreachable" in ran.stderr
