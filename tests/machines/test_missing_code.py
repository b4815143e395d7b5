"""A worker that lacks the code of a job, on real machines with files of their own."""

import json
from pathlib import Path

import pytest

from tests.machines.cluster import Cluster
from tests.support.patience import until

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder with a program, which one of the workers does not have."""
    folder = tmp_path / "only-w1" / "code"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("import os; print(os.getcwd())\n")
    return folder


@pytest.fixture
def lab(cluster: Cluster, code: Path) -> Cluster:
    cluster.host("w2").hide(code.parent)
    cluster.join("w1")
    cluster.join("w2")
    return cluster


def test_jobs_run_where_their_directory_is_and_none_fails(
    lab: Cluster, code: Path
) -> None:
    broker = lab.broker
    array = ("--array", "1-20", "--", "python3", "train.py")
    jobs = broker.enqueue_array(*array, cwd=code)
    broker.ok("wait", f"{jobs[0]}-{jobs[-1]}")
    documents = [broker.client.job(job) for job in jobs]
    assert {one["state"] for one in documents} == {"succeeded"}
    assert {one["worker"] for one in documents} == {"w1"}
    assert broker.logs(jobs[0]).strip() == str(code)


def test_the_directory_of_a_caller_on_another_machine_travels(
    lab: Cluster, code: Path
) -> None:
    caller = lab.host("w1")
    job = caller.enqueue("--", "./train.sh", cwd=code)
    caller.run("wait", str(job))
    told = lab.broker.reason(job)
    assert "on `w1`: program `./train.sh` not found in" in told
    assert f"on `w2`: directory `{code}`: no such file or directory" in told
    (code / "train.sh").write_text("#!/bin/sh\npwd\n")
    (code / "train.sh").chmod(0o755)
    caller.ok("rerun", str(job))
    caller.ok("wait", str(job))
    assert lab.broker.logs(job).strip() == str(code)


def test_a_script_that_is_missing_on_its_only_worker_fails_the_job_there(
    lab: Cluster, code: Path
) -> None:
    pinned = ("--worker", "w2", "--cwd", str(code.parent))
    job = lab.broker.enqueue(*pinned, "--", "python3", "train.py")
    lab.broker.run("wait", str(job))
    script = f"script `train.py` not found in {code.parent}"
    assert lab.broker.reason(job) == f"could not start on `w2`: {script}"


def test_a_job_waits_for_a_worker_that_is_away_and_says_what_the_other_lacks(
    lab: Cluster, code: Path
) -> None:
    broker = lab.broker
    lab.cut_off("w1")
    job = broker.enqueue("--", "python3", "train.py", cwd=code)

    def told() -> bool:
        return f"not on `w2`: directory `{code}`" in (broker.reason(job) or "")

    until(told, "it does not say what the other lacks")
    assert "`w1`" in broker.reason(job)
    reply = json.loads(broker.ok("explain", "--json", str(job)))
    why = {one["worker"]: one for one in reply["workers"]}
    assert why["w2"]["reason"] == "avoided"
    assert why["w2"]["why"] == f"directory `{code}`: no such file or directory"
    lab.reconnect("w1")
    broker.ok("wait", str(job))
    assert broker.client.job(job)["worker"] == "w1"


def test_a_worker_where_jobs_fail_at_once_is_held_back_and_said_to_be(
    lab: Cluster, code: Path
) -> None:
    broker = lab.broker
    line = f"test -e {code}/train.py && sleep 0.5"
    jobs = broker.enqueue_array("--array", "1-40", "--cwd", "/", "--", line)
    broker.run("wait", f"{jobs[0]}-{jobs[-1]}")
    bad = [one for one in map(broker.client.job, jobs) if one["state"] == "failed"]
    assert {one["worker"] for one in bad} == {"w2"}
    assert 3 <= len(bad) < len(jobs) / 2
    (held,) = lab.await_worker("w2", connected=True)["held_back"]
    assert held["reason"].startswith("3 jobs like it in a row failed there within 2 s")
    warned = broker.run("workers").stderr
    assert "worker w2 gets no `test` for some minutes: 3 jobs like it" in warned
    assert "w2 gets no `test`: 3 jobs like it" in broker.run("doctor").stdout
    assert "w2 (held back from `test`, which fail there)" in broker.ok("show", "--all")
    broker.ok("resume", "w2")
    assert not lab.await_worker("w2", connected=True)["held_back"]
