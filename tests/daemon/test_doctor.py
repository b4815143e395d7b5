"""`grass doctor` on made-up machines, with and without a daemon."""

import asyncio
import json
from pathlib import Path

import pytest

from grass.config import Home
from grass.daemon import doctor_process
from grass.errors import TimedOut
from tests.support.gpus import FakeGpus
from tests.support.homes import Document, GrassHome
from tests.support.machines import Machine

pytestmark = pytest.mark.daemon


def examined(home: GrassHome, code: int = 0) -> dict[str, Document]:
    """Return the findings by the name of their check."""
    ran = home.run("doctor", "--json")
    assert ran.returncode == code, ran.stdout + ran.stderr
    document = json.loads(ran.stdout)
    assert document["ok"] is (code == 0)
    assert all(one["fix"] for one in document["findings"] if one["status"] == "wrong")
    return {one["check"]: one for one in document["findings"]}


@pytest.mark.sqlite
def test_without_gpu_and_daemon_nothing_is_wrong_and_nothing_is_started(
    cold: GrassHome, tmp_path: Path
) -> None:
    cold.environment.update(FakeGpus(tmp_path / "none").environment)
    found = examined(cold)
    assert found["daemon"]["status"] == "note"
    assert "grass start" in found["daemon"]["fix"]
    assert found["nvml"]["status"] == "note"
    assert cold.daemon_pid() is None
    assert not cold.folder.exists()


def test_gpus_a_restriction_and_the_daemon_are_named(
    cold: GrassHome, gpus: FakeGpus
) -> None:
    gpus.device(0, name="Card A", memory="80G")
    gpus.device(1, name="Card B", memory="40G")
    cold.environment.update(gpus.environment)
    cold.ok("start", "--gpus", "1")
    found = examined(cold)
    assert "0 Card A (80G), 1 Card B (40G)" in found["nvml"]["finding"]
    assert "manages 1," in found["managed"]["finding"]
    assert str(cold.daemon_pid()) in found["daemon"]["finding"]
    assert found["clock"]["status"] == "ok"


def test_a_daemon_that_was_stopped_is_started_by_grass_start_alone(
    cold: GrassHome,
) -> None:
    cold.ok("start")
    cold.ok("stop")
    assert "any command" not in examined(cold)["daemon"]["fix"]


def test_what_a_daemon_would_log_is_not_among_the_findings(
    cold: GrassHome, gpus: FakeGpus
) -> None:
    gpus.device(0)
    gpus.fail()
    cold.environment.update(gpus.environment)
    ran = cold.run("doctor")
    assert ran.stderr == "grass: wrong here: nvml\n"


@pytest.mark.parametrize("fault", ["fail", "lost"])
def test_a_gpu_that_cannot_be_used_is_wrong(
    cold: GrassHome, gpus: FakeGpus, fault: str
) -> None:
    gpus.device(0)
    if fault == "fail":
        gpus.fail()
    else:
        gpus.fault(0, fault)
    cold.environment.update(gpus.environment)
    found = examined(cold, 1)
    assert any(
        found[check]["status"] == "wrong"
        for check in ("nvml", "gpu 0")
        if check in found
    )


@pytest.mark.sqlite
def test_mistakes_in_the_home_are_wrong(cold: GrassHome) -> None:
    cold.folder.mkdir(mode=0o777)
    cold.folder.chmod(0o777)
    (cold.folder / "config.toml").write_text("nonsense = [")
    found = examined(cold, 1)
    assert "chmod" in found["home"]["fix"]
    assert found["settings"]["status"] == "wrong"
    ran = cold.run("doctor")
    assert "wrong home" in ran.stdout
    assert "wrong here: home, settings" in ran.stderr


def test_a_worker_finds_its_broker_or_says_what_to_do(
    machine: Machine, broker: GrassHome
) -> None:
    line = broker.ok("token", "new").strip().splitlines()[-1]
    farm = machine("farm")
    farm.ok(*line.split()[1:], "--name", "farm")
    found = examined(farm)
    assert "answers after" in found["broker"]["finding"]
    assert found["clock"]["status"] == "ok"
    broker.ok("stop")
    assert examined(farm, 1)["broker"]["status"] == "wrong"


def test_the_daemon_tells_what_is_found_on_its_machine(
    shared: GrassHome,
) -> None:
    document = json.loads(shared.ok("doctor", "--broker", "local", "--json"))
    assert document["ok"] is True
    found = {one["check"]: one for one in document["findings"]}
    assert found["home"]["finding"] == str(shared.folder)
    assert str(shared.daemon_pid()) in found["daemon"]["finding"]
    assert str(shared.folder) in shared.ok("doctor", "--broker", "local")


def test_checks_that_hang_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_process, "MOST_S", 0.0)

    async def ask() -> None:
        checks = doctor_process.DoctorProcess(Home(str(tmp_path)))
        with pytest.raises(TimedOut, match="did not end"):
            await checks.findings()

    asyncio.run(ask())
