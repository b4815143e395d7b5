"""Pools on a real Ray: `make ray-test`. A ledger that jobs write tells who ran when."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.ray_cluster import VARIABLE, RayCluster

pytestmark = [
    pytest.mark.daemon,
    pytest.mark.timeout(400),
    pytest.mark.skipif(VARIABLE not in os.environ, reason="`make ray-test` has a Ray"),
]
SETTLED_S = 240
"""A lost worker is waited for until its lease is over for sure."""
_JOB = """\
exec 9>>{folder}/lock.$GRASS_JOB_ID
flock -n 9 || echo "twice $GRASS_JOB_ID" >> {folder}/ledger
echo "begin $GRASS_JOB_ID $GRASS_ATTEMPT" >> {folder}/ledger
until [ -e {folder}/go ]; do sleep 0.2; done
echo "end $GRASS_JOB_ID" >> {folder}/ledger
"""


@pytest.fixture
def home(ray_cluster: RayCluster, folder: Path, tmp_path: Path) -> Iterator[GrassHome]:
    """A broker without a worker of its own."""
    made = GrassHome(tmp_path)
    made.ok("start", "--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker")
    yield made
    (folder / "go").touch()
    for pool in json.loads(made.ok("pool", "show", "--json"))["pools"]:
        made.ok("pool", "remove", pool["name"])
    until(lambda: pilots(made), "a pilot stays", lambda left: not left, SETTLED_S)
    made.end()


@pytest.fixture
def pool(home: GrassHome, ray_cluster: RayCluster, folder: Path) -> str:
    """A pool of two workers."""
    usual = ("--max-workers=2", "--idle=20s", f"--folder={folder}")
    said = home.run("pool", "add", "ray", f"--ray={ray_cluster.address}", *usual)
    assert said.returncode == 0, said.stderr
    return "ray"


def pilots(home: GrassHome) -> list[dict[str, Any]]:
    pools = json.loads(home.ok("pool", "show", "--json"))["pools"]
    return [pilot for one in pools for pilot in one["pilots"]]


def ledger(folder: Path, word: str = "") -> list[str]:
    path = folder / "ledger"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line.startswith(word)]


def begin(home: GrassHome, folder: Path, count: int) -> list[int]:
    """Have so many jobs begin on workers of the pool."""
    script = _JOB.format(folder=folder)
    words = ("--pool", "ray", "--retry-lost=3", "--", "sh", "-c", script)
    jobs = [home.enqueue(*words) for _ in range(count)]
    until(lambda: ledger(folder, "begin"), "no start", lambda x: len(x) == count)
    return jobs


def finish(home: GrassHome, folder: Path, jobs: list[int]) -> None:
    """Let jobs end, and read in the ledger that each ran through once."""
    (folder / "go").touch()
    until(lambda: ledger(folder, "end"), "no end", lambda x: len(x) >= len(jobs))
    home.wait(*jobs)
    assert sorted(ledger(folder, "end")) == sorted(f"end {job}" for job in jobs)
    assert ledger(folder, "twice") == []
    states = {home.client.job(job)["state"] for job in jobs}
    assert states == {"succeeded"}


def test_jobs_run_on_workers_that_ray_starts(
    home: GrassHome, pool: str, folder: Path
) -> None:
    jobs = begin(home, folder, 2)
    until(lambda: home.ok("pool", "show"), "no word of Ray", lambda x: "RUNNING" in x)
    finish(home, folder, jobs)


def test_a_gpu_is_the_one_that_ray_gave(
    home: GrassHome, ray_cluster: RayCluster, folder: Path
) -> None:
    usual = ("--max-workers=1", "--idle=5s", f"--folder={folder}", "--gpus=1")
    home.ok("pool", "add", "gpus", f"--ray={ray_cluster.address}", *usual)
    home.ok("up", "gpus")
    (one,) = until(lambda: pilots(home), "none", lambda x: x and x[0]["connected"])
    environment = worker_environment(one["engine_id"])
    assert environment["CUDA_VISIBLE_DEVICES"] in ("0", "1")


def worker_environment(engine_id: str) -> dict[str, str]:
    """Return the environment of a pilot, which Ray tells its submission id."""
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            text = entry.read_text(errors="replace")
            command = (entry.parent / "cmdline").read_text()
        except OSError:
            continue
        found = dict(one.split("=", 1) for one in text.split("\0") if "=" in one)
        mark = engine_id.rpartition("-")[2]
        if mark in command and "pilot" in command and "timeout" not in command:
            return found
    raise AssertionError("no process of the pilot")


def test_what_no_node_can_run_is_refused(
    home: GrassHome, ray_cluster: RayCluster, folder: Path
) -> None:
    usual = ("--max-workers=1", f"--folder={folder}", "--gpus=9")
    ran = home.run("pool", "add", "big", f"--ray={ray_cluster.address}", *usual)
    assert ran.returncode == 5
    assert ran.stderr == "grass: none of Ray's 2 nodes has CPU 1, GPU 9\n"


def test_an_actor_that_is_killed_makes_no_job_run_twice(
    home: GrassHome, pool: str, ray_cluster: RayCluster, folder: Path
) -> None:
    jobs = begin(home, folder, 2)
    before = {one["engine_id"] for one in pilots(home)}
    ray_cluster.kill_actors()
    until(
        lambda: {one["word"] for one in pilots(home) if one["engine_id"] in before},
        "Ray does not say that they have failed",
        lambda words: words <= {"FAILED"},
    )
    settle(home, folder, jobs)
    finish(home, folder, jobs)


def test_a_raylet_that_is_killed_makes_no_job_run_twice(
    home: GrassHome, pool: str, ray_cluster: RayCluster, folder: Path
) -> None:
    jobs = begin(home, folder, 2)
    ray_cluster.kill_raylet()
    ray_cluster.stop_node()
    ray_cluster.start_node()
    settle(home, folder, jobs)
    finish(home, folder, jobs)
    # What Ray has lost cannot be ended by Ray: the pilots end themselves.
    until(lambda: pilots(home), "a pilot stays", lambda left: not left, SETTLED_S)


def settle(home: GrassHome, folder: Path, jobs: list[int]) -> None:
    """Wait until every job runs on a worker that is connected, the old or another."""

    def running() -> list[dict[str, Any]]:
        away = {one["worker"] for one in pilots(home) if not one["connected"]}
        found = home.client.jobs(states=["running"])
        return [
            job
            for job in found
            if not job.get("unreachable") and job["worker"] not in away
        ]

    until(running, "not all run again", lambda x: len(x) == len(jobs), SETTLED_S)


@pytest.fixture
def guarded() -> Iterator[RayCluster]:
    """A head that asks for a token."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    cluster = RayCluster(folder, token="s" * 32)
    try:
        cluster.start_head()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_head_that_asks_for_a_token_is_told_in_its_words(
    home: GrassHome, guarded: RayCluster, folder: Path
) -> None:
    words = ("pool", "add", "ray", f"--ray={guarded.address}", "--max-workers=1")
    ran = home.run(*words, f"--folder={folder}")
    assert ran.returncode == 5
    assert ran.stderr.startswith("grass: Unauthorized: Missing authentication token (")
    assert len(ran.stderr.splitlines()) == 1
    token = folder / "token"
    token.write_text("wrong\n")
    ran = home.run(*words, f"--folder={folder}", f"--token-file={token}")
    assert "Forbidden: Invalid authentication token" in ran.stderr
    token.write_text("s" * 32 + "\n")
    until(
        lambda: home.run(*words, f"--folder={folder}", f"--token-file={token}").stderr,
        "the head is no node of its own",
        lambda said: "none of Ray's 1 nodes has CPU 1" in said,
    )
    assert json.loads(home.ok("pool", "show", "--json"))["pools"] == []
