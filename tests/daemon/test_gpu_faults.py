"""A GPU that is lost, with a real daemon and a stand-in for NVIDIA's library."""

import json

import pytest

from tests.support.fifo import Fifo
from tests.support.gpus import FakeGpus
from tests.support.homes import Document, GrassHome
from tests.support.machines import Machine
from tests.support.patience import until

pytestmark = pytest.mark.daemon

LOST = "it is lost from the bus"


@pytest.fixture
def desk(cold: GrassHome, gpus: FakeGpus) -> GrassHome:
    """A home with two GPUs."""
    gpus.device(0, name="Card A", memory="80G")
    gpus.device(1, name="Card B", memory="40G")
    cold.environment.update(gpus.environment)
    return cold


def faults_of(home: GrassHome, *options: str) -> Document:
    """Return the faults of all GPUs, after the workers have looked at them."""
    home.ok("gpu", *options)
    workers = json.loads(home.ok("workers", "--json", *options))["workers"]
    return {unit: one for each in workers for unit, one in each["faults"].items()}


def kinds(home: GrassHome) -> list[str]:
    lines = home.ok("events", "--json").splitlines()
    found = [json.loads(line)["kind"] for line in lines]
    return [kind for kind in found if kind.startswith("gpu-") or "drained" in kind]


def lose(home: GrassHome, gpus: FakeGpus) -> None:
    gpus.fault(0, "lost")
    until(lambda: faults_of(home), "no fault is reported", bool)


def mend(home: GrassHome, gpus: FakeGpus) -> None:
    gpus.mend(0)
    works = "the GPU is not found to work"
    until(lambda: faults_of(home)["0"]["works_since"], works, bool)


def test_every_view_shows_a_lost_gpu_and_offers_nothing_of_it(
    desk: GrassHome, gpus: FakeGpus
) -> None:
    desk.ok("start", "--name", "desk")
    lose(desk, gpus)
    line = f"gpu 0 of desk takes no jobs: {LOST}, for "
    assert line in desk.ok("show")
    assert line in desk.run("workers").stderr
    assert "gpu 1/2" in desk.ok("workers")
    assert f"  {LOST}, for " in desk.ok("gpu")
    assert f"{LOST}, for " in desk.ok("gpu", "--oneline")
    found = json.loads(desk.run("doctor", "--json").stdout)["findings"]
    [finding] = [one for one in found if one["check"] == "gpu 0 of desk"]
    assert finding["status"] == "wrong"
    [worker] = desk.document()["workers"]
    assert (worker["free"]["gpu"]["0"], worker["free"]["vram"]["0"]) == (0, 0)
    [gpu, other] = json.loads(desk.ok("gpu", "--json"))["workers"][0]["gpus"]
    assert (gpu["fault"]["reason"], gpu["memory"]["free"]) == (LOST, 0)
    assert other["fault"] is None
    job = desk.enqueue("-g", "2", "--", "true")
    assert f"gpu 0: {LOST}, for " in desk.ok("explain", str(job))
    assert "1 out of use" in desk.ok("explain", str(job))


def test_no_restart_forgets_it_and_resume_takes_it_back_once_it_works(
    desk: GrassHome, gpus: FakeGpus
) -> None:
    desk.ok("start", "--name", "desk")
    lose(desk, gpus)
    since = faults_of(desk)["0"]["since"]
    desk.ok("restart")
    desk.wait(desk.enqueue("-g", "1", "--", "true"))
    assert faults_of(desk)["0"]["since"] == since
    units = desk.document()["workers"][0]["capacity"]["gpu"]
    assert sorted(units) == ["0", "1"]
    mend(desk, gpus)
    job = desk.enqueue("-g", "2", "--", "true")
    assert "and `grass resume gpu:0` uses it again" in desk.ok("explain", str(job))
    assert desk.ok("resume", "gpu:0") == "gpu:0 is in use again\n"
    assert desk.wait(job)["state"] == "succeeded"
    assert kinds(desk) == ["gpu-failed", "gpu-works", "gpu-acknowledged"]


def test_a_rule_may_take_it_back_and_a_command_hears_of_both(
    desk: GrassHome, gpus: FakeGpus, news: Fifo
) -> None:
    desk.folder.mkdir(exist_ok=True)
    facts = "$GRASS_EVENT $GRASS_WORKER $GRASS_UNIT $GRASS_REASON"
    (desk.folder / "config.toml").write_text(
        f'[notify]\non_gpu_fault = "echo {facts} > {news}"\n'
        '[gpu]\nacknowledge_after = "1s"\n'
    )
    desk.ok("start", "--name", "desk")
    lose(desk, gpus)
    assert news.hear() == f"gpu-failed desk gpu:0 {LOST}"
    job = desk.enqueue("-g", "2", "--", "true")
    gpus.mend(0)
    assert news.hear() == f"gpu-works desk gpu:0 {LOST}"
    assert desk.wait(job)["state"] == "succeeded"
    assert kinds(desk)[-1] == "gpu-acknowledged"


def test_an_acknowledged_fault_ends_when_a_check_finds_that_the_gpu_works(
    desk: GrassHome, gpus: FakeGpus
) -> None:
    desk.ok("start", "--name", "desk")
    lose(desk, gpus)
    ran = desk.run("resume", "gpu:0")
    assert ran.stdout == "the fault of gpu:0 is acknowledged\n"
    assert f"gpu:0 still has a fault: {LOST}" in ran.stderr
    job = desk.enqueue("-g", "2", "--", "true")
    gpus.mend(0)
    assert desk.wait(job)["state"] == "succeeded"
    assert faults_of(desk) == {}


def test_a_gpu_that_was_taken_out_is_removed_by_its_name(
    desk: GrassHome, gpus: FakeGpus
) -> None:
    desk.ok("start", "--name", "desk")
    gpus.remove(0)
    until(lambda: faults_of(desk), "no fault is reported", bool)
    ran = desk.run("capacity", "remove", "gpu:0")
    assert ran.returncode == 5
    assert "`grass restart` on desk" in ran.stderr
    desk.ok("restart")
    until(lambda: faults_of(desk), "it is forgotten", bool)
    shown = json.loads(desk.ok("gpu", "--json"))["workers"][0]["gpus"]
    assert {one["name"]: bool(one["fault"]) for one in shown} == {
        "Card A": True,
        "Card B": False,
    }
    [unit] = faults_of(desk)
    desk.ok("capacity", "remove", f"gpu:{unit}")
    [gpu] = json.loads(desk.ok("gpu", "--json"))["workers"][0]["gpus"]
    assert (gpu["name"], faults_of(desk)) == ("Card B", {})


def test_doctor_finds_the_faults_of_other_machines(
    machine: Machine, broker: GrassHome, gpus: FakeGpus
) -> None:
    gpus.device(0)
    farm = machine("farm")
    farm.environment.update(gpus.environment)
    line = broker.ok("token", "new").strip().splitlines()[-1]
    farm.ok(*line.split()[1:], "--name", "farm")
    gpus.fault(0, "lost")
    until(lambda: faults_of(broker), "no fault is reported", bool)
    for home in (broker, farm):
        ran = home.run("doctor")
        assert ran.returncode == 1
        assert f"gpu 0 of farm {LOST}" in " ".join(ran.stdout.split())
    farm.ok("stop")
    assert "gpu 0 of farm takes no jobs" in broker.ok("show")
