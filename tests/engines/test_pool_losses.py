"""What a real Slurm takes away from pools: a ledger shows what runs twice, or never."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.engines.pool_home import Ledger, pilots, slurm_home, slurm_jobs
from tests.support.homes import GrassHome
from tests.support.lan import Lan, can_make_hosts
from tests.support.patience import until
from tests.support.processes import alive, processes_with
from tests.support.slurm import NODES, SlurmCluster

pytestmark = [pytest.mark.daemon, pytest.mark.long, pytest.mark.timeout(600)]
LONG_S = 120.0
LEASE_S = 4


@pytest.fixture
def home(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[GrassHome]:
    # The test before may have killed the controller, which has to find them again.
    until(lambda: slurm_cluster.idle_nodes() == set(NODES), "not all nodes are idle")
    with slurm_home(slurm_cluster, tmp_path) as made:
        yield made


@pytest.fixture
def ledger(folder: Path) -> Ledger:
    return Ledger(folder / "ledger")


def add(home: GrassHome, folder: Path, *options: str) -> None:
    usual = ("--slurm", "--time=20m", "--idle=3s", f"--lease={LEASE_S}s")
    home.ok("pool", "add", "uni", *usual, f"--folder={folder}", *options)


def finish(home: GrassHome, jobs: list[int]) -> None:
    home.client.wait([str(job) for job in jobs], LONG_S)


def test_two_hundred_short_jobs_share_pilots(
    home: GrassHome, folder: Path, ledger: Ledger
) -> None:
    add(home, folder, "--max-workers=3", "--cpus=4")
    jobs = home.enqueue_array("--array=1-200", "--", "sh", "-c", ledger.line(0.1))
    finish(home, jobs)
    assert ledger.counts("began") == ledger.counts("ended") == dict.fromkeys(jobs, 1)
    until(lambda: pilots(home), "a pilot stays", lambda left: not left)


def test_twenty_jobs_have_pilots_of_their_own(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path, ledger: Ledger
) -> None:
    add(home, folder, "--max-workers=6", "--mode=per-job")
    line = ledger.line(0.1)
    jobs = home.enqueue_array("--array=1-20", "--time-limit=5m", "--", "sh", "-c", line)
    finish(home, jobs)
    assert ledger.counts("began") == ledger.counts("ended") == dict.fromkeys(jobs, 1)
    assert len(slurm_jobs(slurm_cluster, folder)) == 20
    until(lambda: pilots(home), "a pilot stays", lambda left: not left)


def test_a_preempted_job_runs_again_once_its_lease_is_over(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path, ledger: Ledger
) -> None:
    add(home, folder, "--max-workers=2")
    job = home.enqueue("--retry-lost=1", "--", "sh", "-c", ledger.line(8))
    until(lambda: ledger.counts("began"), "the job does not start")
    everything = (
        "--partition=urgent",
        "--exclusive",
        "--nodes=3",
        "--output=/dev/null",
    )
    slurm_cluster.run("sbatch", *everything, "--wrap=sleep 1")
    finish(home, [job])
    assert ledger.counts("ended") == {job: 1}
    assert ledger.counts("began") == {job: 2}


def test_a_worker_cut_off_for_longer_than_its_lease_runs_nothing_twice(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path, ledger: Ledger
) -> None:
    add(home, folder, "--max-workers=2")
    job = home.enqueue("--retry-lost=1", "--", "sh", "-c", ledger.line(3 * LEASE_S))
    until(lambda: ledger.counts("began"), "the job does not start")
    (number,) = slurm_jobs(slurm_cluster, folder, "R")
    # The daemon alone: its keeper counts the lease, as on a host that is cut off.
    mark = f"SLURM_JOB_ID={number}".encode()
    stopped = [pid for pid in processes_with(mark) if _is_daemon(pid)]
    assert stopped
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    finish(home, [job])
    # Slurm may have ended it meanwhile.
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    assert ledger.counts("ended") == {job: 1}
    assert ledger.counts("began") == {job: 2}
    assert home.client.job(job)["state"] == "succeeded"


def test_nothing_stays_of_a_pilot_that_is_killed(
    home: GrassHome, folder: Path, ledger: Ledger
) -> None:
    add(home, folder, "--max-workers=2")
    job = home.enqueue("--retry-lost=1", "--", "sh", "-c", ledger.line(8))
    until(lambda: ledger.counts("began"), "the job does not start")
    mark = str(folder).encode()
    daemons = [pid for pid in processes_with(mark) if _is_daemon(pid)]
    (pilot,) = [pid for pid in processes_with(mark) if _runs(pid, b"pilot.py")]
    keepers = [pid for one in daemons for pid in _keepers_of(one)]
    assert keepers
    os.kill(pilot, signal.SIGKILL)
    until(lambda: not any(map(alive, daemons)), "its daemon stays")
    finish(home, [job])
    assert ledger.counts("began")[job] <= 2
    assert ledger.counts("ended")[job] >= 1
    until(lambda: not any(map(alive, keepers)), "its keeper stays", within_s=LONG_S)


def test_a_host_cut_off_for_longer_than_its_lease_runs_nothing_twice(
    tmp_path: Path, folder: Path, ledger: Ledger
) -> None:
    if not can_make_hosts():
        pytest.skip("network namespaces cannot be made here")
    (tmp_path / "lan").mkdir()
    with closing(Lan(tmp_path / "lan", ("head", *NODES))) as lan:
        cluster = SlurmCluster(tmp_path / "slurm", lan=lan)
        try:
            cluster.start()
            _cut_and_heal(lan, cluster, folder, ledger)
        finally:
            cluster.stop()


def _cut_and_heal(
    lan: Lan, cluster: SlurmCluster, folder: Path, ledger: Ledger
) -> None:
    home = lan.hosts["head"]
    home.environment["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
    home.environment["PATH"] += ":/usr/sbin:/sbin"
    home.ok("start", "--bind=0.0.0.0:7500", f"--advertise={home.address}:7500")
    add(home, folder, "--max-workers=3", "--mode=shared")
    asked = ("--pool=uni", "--retry-lost=1")
    job = home.enqueue(*asked, "--", "sh", "-c", ledger.line(3 * LEASE_S))
    until(lambda: ledger.counts("began"), "the job does not start")
    (node,) = cluster.run("squeue", "-h", "-t", "R", "-o", "%N").split()
    lan.hosts[node].cut()
    finish(home, [job])
    lan.hosts[node].heal()
    assert ledger.counts("ended") == {job: 1}
    assert ledger.counts("began") == {job: 2}
    assert home.client.job(job)["state"] == "succeeded"
    until(lambda: pilots(home), "a pilot stays", lambda x: not x, within_s=LONG_S)
    left = set(processes_with(str(folder).encode()))
    until(lambda: not any(map(alive, left)), "a process stays", within_s=LONG_S)
    assert ledger.counts("ended") == {job: 1}


def test_a_controller_that_is_killed_loses_no_job(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path, ledger: Ledger
) -> None:
    add(home, folder, "--max-workers=3", "--cpus=2")
    line = ("sh", "-c", ledger.line(1))
    jobs = home.enqueue_array("--array=1-12", "--", *line)
    until(lambda: ledger.counts("ended"), "no job has ended")
    # What it has not written yet of the last seconds is lost with it.
    slurm_cluster.kill_controller()
    more = home.enqueue_array("--array=1-8", "--", *line)
    finish(home, jobs)
    slurm_cluster.start_controller()
    finish(home, more)
    everyone = dict.fromkeys((*jobs, *more), 1)
    assert ledger.counts("began") == ledger.counts("ended") == everyone
    slurm_cluster.signal_controller(signal.SIGSTOP)
    last = home.enqueue_array("--array=1-4", "--", *line)
    slurm_cluster.signal_controller(signal.SIGCONT)
    finish(home, last)
    assert ledger.counts("began") == ledger.counts("ended")
    assert len(pilots(home)) <= 3


def test_a_node_whose_slurmd_is_killed_runs_nothing_twice(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path, ledger: Ledger
) -> None:
    add(home, folder, "--max-workers=3", "--cpus=4")
    jobs = home.enqueue_array("--array=1-12", "--", "sh", "-c", ledger.line(3))
    until(lambda: ledger.counts("began"), "no job has started")
    slurm_cluster.kill_node("n1")
    try:
        finish(home, jobs)
    finally:
        slurm_cluster.start_node("n1")
    assert ledger.counts("began") == ledger.counts("ended") == dict.fromkeys(jobs, 1)


def test_a_pilot_out_of_time_loses_no_job_that_has_a_limit(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path, ledger: Ledger
) -> None:
    """It takes jobs while they can end in its minute; another one takes the rest."""
    usual = ("--slurm", "--time=1m", "--idle=3s", f"--folder={folder}")
    home.ok("pool", "add", "uni", *usual, "--mode=shared", "--max-workers=1")
    limited = ("--time-limit=20s", "--grace=2s")
    line = ledger.line(9)
    jobs = home.enqueue_array("--array=1-5", *limited, "--", "sh", "-c", line)
    finish(home, jobs)
    assert ledger.counts("began") == ledger.counts("ended") == dict.fromkeys(jobs, 1)
    assert len(slurm_jobs(slurm_cluster, folder)) > 1


def _is_daemon(pid: int) -> bool:
    return _runs(pid, b"daemon")


def _runs(pid: int, word: bytes) -> bool:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return any(one.rpartition(b"/")[2] == word for one in words)


def _keepers_of(daemon: int) -> list[int]:
    variables = Path(f"/proc/{daemon}/environ").read_bytes().split(b"\0")
    (home,) = [one[11:] for one in variables if one.startswith(b"GRASS_HOME=")]
    return [pid for pid in processes_with(home + b"/keeper") if _runs(pid, b"keeper")]
