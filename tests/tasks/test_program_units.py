"""Whose units the tasks of a program have: a guest's, a job's, or the machine's."""

import json
import os
import subprocess
import sys

import pytest

from grass.errors import NeverFits
from grass.resource import Cores, Gpu, Memory
from grass.tasks.program_units import ProgramBlock, ProgramUnits
from tests.support.fixtures import lasting, shared
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

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
