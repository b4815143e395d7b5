"""Whose units the tasks of a program have: a guest's, a job's, or the machine's."""

import json
import os
import subprocess
import sys

import anyio.lowlevel
import pytest

import grass
from grass.errors import NeverFits
from grass.resource import Cores, Gpu, Kind, Memory, Resource, Vram
from grass.tasks.program_units import ProgramBlock, ProgramUnits
from tests.support.fixtures import lasting, shared
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S
from tests.tasks.shared import Seats

__all__ = ["lasting", "shared"]

TELL = """
import json, os, sys
import grass


def held():
    return repr(grass.GVAR.res)


async def main():
    found = await grass.exec1(grass.Cores(1), held)
    print(json.dumps([os.environ.get("GRASS_JOB_ID"), found]))


grass.run_combine(main, [], eval("grass." + sys.argv[1]) if len(sys.argv) > 1 else None)
"""


def tell(home: GrassHome, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program outside of any job."""
    return subprocess.run(
        [sys.executable, "-c", TELL, *words],
        capture_output=True,
        text=True,
        check=False,
        env=home.environment,
        timeout=PATIENCE_S,
    )


def test_without_a_daemon_it_is_the_machine() -> None:
    with ProgramBlock(None) as program:
        names = {str(core) for core in os.sched_getaffinity(0)}
        assert set(program.capacity["cpu"]) == names
        assert program.capacity["ram"]


def test_what_was_named_is_what_there_is() -> None:
    with ProgramBlock(Cores(64) & Memory(2)) as program:
        assert len(program.capacity["cpu"]) == 64


def test_a_child_sees_gpus_as_the_program_was_shown_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b")
    program = ProgramUnits({"gpu": {"2": 10_000, "5": 10_000}}, Gpu(2))
    assert program.variables(["5"])["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    assert program.variables([])["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize("rpw", [Gpu(8), Gpu(0.5), Vram("8G"), Cores(1) & Gpu(1)])
def test_gpus_that_a_machine_does_not_have_are_refused(
    gpus: FakeGpus, rpw: Resource
) -> None:
    with pytest.raises(NeverFits, match="and this machine has no GPU") as refused:
        ProgramBlock(rpw).__enter__()
    assert "name less in `rpw`" in refused.value.hint


def test_more_gpus_than_a_machine_has_are_refused(gpus: FakeGpus) -> None:
    for number in range(2):
        gpus.device(number, memory="80G")
    with pytest.raises(NeverFits) as refused:
        grass.run_combine(anyio.lowlevel.checkpoint, [], Gpu(8))
    assert refused.value.message == (
        "`rpw` has gpu 8, and this machine has gpu 2, vram 160G"
    )


def test_gpus_in_rpw_are_found_ones(
    gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        gpus.device(number, memory="80G")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    with ProgramBlock(Cores(1) & Gpu(2)) as program:
        assert program.capacity["gpu"] == {"1": 10_000, "3": 10_000}
        assert program.variables(["3"])["CUDA_VISIBLE_DEVICES"] == "3"
    with pytest.raises(NeverFits, match="this machine has gpu 2, vram 160G"):
        ProgramBlock(Gpu(3)).__enter__()


def test_without_rpw_gpus_are_those_that_the_program_is_shown(
    gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        gpus.device(number, memory="80G")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    with ProgramBlock(None) as program:
        assert list(program.found_gpus()["gpu"]) == ["2"]


def test_kinds_that_no_machine_is_asked_for_are_as_the_program_declares_them() -> None:
    with ProgramBlock(Kind("printer", 2) & Seats(3)) as program:
        assert program.capacity == {"printer": {"0": 10_000, "1": 10_000}}
        assert program.own.parts["Seats"].count == 3


@pytest.mark.daemon
def test_with_a_daemon_a_program_is_a_guest_of_what_is_free(shared: GrassHome) -> None:
    ran = tell(shared)
    job, found = json.loads(ran.stdout)
    assert found.startswith("CPU([")
    assert "grass: tasks have cpu " in ran.stderr
    document = shared.wait(int(job))
    assert document["request"]["cpu"] >= 1
    assert "gpu" not in document["request"]
    assert document["state"] == "succeeded"


@pytest.mark.daemon
def test_a_damaged_worker_id_is_an_error_that_names_it(shared: GrassHome) -> None:
    path = shared.folder / "worker-id"
    was = path.read_bytes()
    path.write_bytes(b"\xff\xfe\n")
    try:
        ran = tell(shared)
    finally:
        path.write_bytes(was)
    assert ran.returncode == 1
    assert f"{path} is damaged (put it back from a copy" in ran.stderr


@pytest.mark.daemon
def test_with_a_daemon_a_program_waits_for_what_it_names(shared: GrassHome) -> None:
    ran = tell(shared, "Cores(1)")
    job, _found = json.loads(ran.stdout)
    assert shared.wait(int(job))["request"] == {"cpu": 1}
    refused = tell(shared, "Cores(1000)")
    assert refused.returncode == 1
    assert NeverFits.__name__ in refused.stderr


@pytest.mark.daemon
def test_inside_a_job_it_is_what_that_job_has(shared: GrassHome) -> None:
    (shared.desk / "tell.py").write_text(TELL)
    for words in ((), ("Cores(1)",)):
        job = shared.enqueue("-c", "1", "--", sys.executable, "tell.py", *words)
        assert shared.wait(job)["state"] == "succeeded"
        inside, found = json.loads(shared.logs(job))
        core = next(iter(shared.client.job(job)["attempts"][0]["allocation"]["cpu"]))
        assert (inside, found) == (str(job), f"CPU([{core}])")
