"""Pools as a user has them: a real daemon, and a real Slurm."""

import json
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grass.keeper import crash_points
from tests.engines.pool_home import pilots, pools, slurm_home, slurm_jobs
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S, until
from tests.support.processes import alive
from tests.support.slurm import SlurmCluster, free_ports


@pytest.fixture
def home(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[GrassHome]:
    with slurm_home(slurm_cluster, tmp_path) as made:
        yield made


@pytest.fixture
def add(home: GrassHome, folder: Path) -> Callable[..., str]:
    def add_pool(*options: str, most: int = 2, idle: str = "2s") -> str:
        usual = ("--slurm", "--time=10m", f"--max-workers={most}", f"--idle={idle}")
        return home.ok("pool", "add", "uni", *usual, f"--folder={folder}", *options)

    return add_pool


def test_jobs_run_on_workers_that_come_and_leave(
    home: GrassHome, slurm_cluster: SlurmCluster, add: Callable[..., str], folder: Path
) -> None:
    assert "to start at" in add()
    ledger = folder / "ledger"
    line = f"echo $GRASS_JOB_ID $SLURM_JOB_ID | tee -a {ledger}"
    jobs = [home.enqueue("sh", "-c", line) for _ in range(8)]
    home.wait(*jobs)
    ran = [tuple(one.split()) for one in ledger.read_text().splitlines()]
    assert sorted(int(job) for job, _ in ran) == jobs
    assert {place for _, place in ran} <= set(slurm_jobs(slurm_cluster, folder))
    until(
        lambda: slurm_jobs(slurm_cluster, folder, "R"), "a pilot stays", lambda x: not x
    )
    until(lambda: pilots(home), "a pilot's row stays", lambda x: not x)
    workers = json.loads(home.ok("workers", "--json"))["workers"]
    until(
        lambda: json.loads(home.ok("workers", "--json"))["workers"],
        f"the record of a worker stays: {workers}",
        lambda x: not x,
    )
    assert "pilot-" not in home.ok("token", "list")
    # What jobs wrote is there when nothing else of the pool is.
    home.ok("pool", "remove", "uni")
    assert pools(home) == []
    assert home.ok("logs", str(jobs[0])).split() in map(list, ran)


def test_no_more_workers_than_the_pool_may_have(
    home: GrassHome, slurm_cluster: SlurmCluster, add: Callable[..., str], folder: Path
) -> None:
    add(most=2)
    jobs = [home.enqueue("sleep", "1") for _ in range(6)]
    home.wait(*jobs)
    assert len(slurm_jobs(slurm_cluster, folder)) <= 2


def test_a_token_is_in_a_private_file_and_nowhere_else(
    home: GrassHome, slurm_cluster: SlurmCluster, add: Callable[..., str], folder: Path
) -> None:
    add("--option=--hold")
    home.enqueue("true")
    (number,) = until(
        lambda: slurm_jobs(slurm_cluster, folder, "PD"), "nothing was submitted"
    )
    files = [one for one in folder.iterdir() if one.suffix != ".out"]
    (token,) = [json.loads(one.read_text())["known"][0]["token"] for one in files]
    tokens = json.loads(home.ok("token", "list", "--json"))["tokens"]
    (listed,) = [one for one in tokens if one["name"].startswith("pilot-")]
    assert listed["role"] == "worker"
    life = datetime.fromisoformat(listed["expires_at"]) - datetime.now(UTC)
    assert life.days < 7
    assert [stat.S_IMODE(one.stat().st_mode) for one in files] == [0o600]
    script = slurm_cluster.run("scontrol", "write", "batch_script", number, "-")
    told = slurm_cluster.run("scontrol", "-o", "show", "job", number)
    assert token.partition(".")[2] not in script + told + home.log()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--partition=nowhere"], "invalid partition specified: nowhere"),
        (["--gpus=9"], "Requested node configuration is not available"),
        (["--submit-prefix=no-such-program"], "cannot be run on this host"),
    ],
)
def test_what_slurm_can_never_do_is_refused_in_its_words(
    home: GrassHome, folder: Path, options: list[str], words: str
) -> None:
    usual = ("--slurm", "--time=10m", "--max-workers=2", f"--folder={folder}")
    ran = home.run("pool", "add", "uni", *usual, *options)
    assert ran.returncode in (3, 5)
    assert words in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert pools(home) == []


def test_an_option_that_would_hide_workers_is_refused(
    home: GrassHome, folder: Path
) -> None:
    usual = ("--slurm", "--time=10m", "--max-workers=2", f"--folder={folder}")
    ran = home.run("pool", "add", "uni", *usual, "--option=--comment=lab")
    assert ran.returncode == 2
    assert "`--comment=lab` cannot be an option of a pool" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert pools(home) == []


def test_numbers_that_no_pool_can_have_are_refused_before_slurm_is_asked(
    home: GrassHome, folder: Path
) -> None:
    usual = ("--slurm", "--partition=nowhere", f"--folder={folder}")
    for option, words in {
        "--cpus=0": "a worker of a pool has at least 1 core",
        "--gpus=-1": "a worker of a pool cannot have -1 GPUs",
        "--memory=0": "--memory `0` is no memory",
        "--time=59s": "the time of a pool is at least 1m",
        "--idle=0": "the idle time of a pool is more than 0",
        "--lease=1s": "the lease of a pool is at least 4s",
        "--max-workers=0": "a pool has 1 to 10000 workers",
    }.items():
        given = ("--time=10m", "--max-workers=2", option)
        ran = home.run("pool", "add", "uni", *usual, *given)
        assert (ran.returncode, ran.stderr.count("\n")) == (2, 1), ran.stderr
        assert ran.stderr.startswith(f"grass pool: {words}"), ran.stderr


def test_jobs_of_a_pool_that_is_removed_are_told_of(
    home: GrassHome, add: Callable[..., str]
) -> None:
    add()
    home.ok("pool", "pause", "uni")
    jobs = [home.enqueue("--pool=uni", "--", "true") for _ in range(2)]
    home.enqueue("true")
    ran = home.run("pool", "remove", "uni")
    assert ran.stderr == (
        "grass: 2 jobs wait for pool `uni` alone, and will wait in the queue:"
        " `grass edit ID --pool none` lets one run anywhere, `grass cancel ID` takes it"
        " out\n"
    )
    assert (
        "pool `uni`, whose workers alone may run it, is removed (`grass edit"
        f" {jobs[0]} --pool none` lets others run it)"
    ) in home.ok("explain", str(jobs[0]))


def test_a_pool_counts_as_a_worker_that_may_come(
    home: GrassHome, add: Callable[..., str]
) -> None:
    add("--option=--hold", "--gpus=2")
    job = home.enqueue("-g", "2", "--pool", "uni", "--", "true")
    assert home.client.job(job)["pool"] == "uni"
    assert home.run("enqueue", "-g", "4", "--", "true").returncode == 6
    unknown = home.run("enqueue", "--pool", "uno", "--", "true")
    assert (unknown.returncode, unknown.stdout) == (4, "")
    assert unknown.stderr == "grass: there is no pool `uno` (pools: uni)\n"
    assert home.run("edit", str(job), "--pool", "uno").returncode == 4
    home.ok("edit", str(job), "--pool", "none")
    assert home.client.job(job)["pool"] is None


def test_a_job_with_its_own_worker_gets_what_it_asked_for(
    home: GrassHome, slurm_cluster: SlurmCluster, add: Callable[..., str], folder: Path
) -> None:
    add("--mode=per-job", "--cpus=4", "--gpus=2", "--memory=1G")
    told = "$SLURM_JOB_ID $SLURM_CPUS_ON_NODE $SLURM_MEM_PER_NODE $CUDA_VISIBLE_DEVICES"
    asked = ("-c2", "-g1", "-m512M", "--time-limit=20m", "--pool=uni")
    job = home.enqueue(*asked, "--", "sh", "-c", f"echo {told}")
    home.wait(job)
    number, *given = home.ok("logs", str(job)).split()
    assert given == ["2", "512", "0"]
    told = slurm_cluster.run("scontrol", "-o", "show", "job", number)
    assert "TimeLimit=00:23:00" in told
    assert "NumCPUs=2" in told
    until(lambda: pilots(home), "the pilot stays", lambda x: not x)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--time-limit=3d"], "Requested time limit is invalid"),
        (["-c5", "--time-limit=1h"], "the most any worker of pool `uni` has is 4"),
    ],
)
def test_what_slurm_can_never_start_is_refused_before_it_is_enqueued(
    home: GrassHome, add: Callable[..., str], asked: list[str], words: str
) -> None:
    add("--cpus=4")
    ran = home.run("enqueue", "--pool=uni", *asked, "--", "true")
    assert ran.returncode in (5, 6)
    assert words in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert json.loads(home.ok("show", "--json", "all"))["jobs"] == []


def test_a_job_has_its_callers_variables_and_those_of_slurm(
    home: GrassHome,
    slurm_cluster: SlurmCluster,
    add: Callable[..., str],
    folder: Path,
    tmp_path: Path,
) -> None:
    add("--environment=caller", "--option=--hold")
    home.environment |= {"OF_CALLER": "secret-7", "SLURM_JOB_ID": "of-caller"}
    line = "echo $OF_CALLER $SLURM_JOB_ID ${GRASS_ALLOTTED-none}; pwd"
    job = home.enqueue("sh", "-c", line, cwd=tmp_path)
    (number,) = until(
        lambda: slurm_jobs(slurm_cluster, folder, "PD"), "nothing was submitted"
    )
    script = slurm_cluster.run("scontrol", "write", "batch_script", number, "-")
    assert "secret-7" not in script
    slurm_cluster.run("scontrol", "release", number)
    home.wait(job)
    said = home.ok("logs", str(job)).splitlines()
    assert said == [f"secret-7 {number} none", str(tmp_path)]
    assert pools(home)[0]["environment"] == "caller"


def test_a_worker_reports_the_time_it_has(
    home: GrassHome, add: Callable[..., str]
) -> None:
    add("--mode=shared", idle="30s")
    home.wait(home.enqueue("true"))
    (pilot,) = pilots(home)
    left = datetime.fromisoformat(pilot["ends_at"]) - datetime.now(UTC)
    assert 9 * 60 < left.total_seconds() < 10 * 60
    ran = home.run("enqueue", "--time-limit=10m", "--pool=uni", "--", "true")
    assert ran.returncode == 6
    assert "stays for the 10m15s that it may take" in ran.stderr


def test_a_worker_offers_the_memory_that_slurm_gives_each_core(
    home: GrassHome, add: Callable[..., str]
) -> None:
    add("--mode=shared", "--cpus=2", idle="30s")
    job = home.enqueue("sh", "-c", "echo ${SLURM_MEM_PER_NODE-none} $SLURM_MEM_PER_CPU")
    home.wait(job)
    assert home.ok("logs", str(job)).split() == ["none", "100"]
    (worker,) = json.loads(home.ok("workers", "--json"))["workers"]
    assert worker["capacity"]["ram"] == {"0": 0.1953}


def test_what_waits_in_slurm_is_told_in_its_words(
    home: GrassHome, slurm_cluster: SlurmCluster, add: Callable[..., str]
) -> None:
    add("--option=--hold")
    job = str(home.enqueue("--time-limit=20m", "--", "true"))
    shown = until(
        lambda: home.ok("pool", "show"), "no reason", lambda text: "JobHeldUser" in text
    )
    assert "PENDING" in shown
    (pilot,) = pilots(home)
    number = pilot["engine_id"]
    words = f"waits in Slurm partition main: JobHeldUser, job {number}"
    assert words in home.ok("explain", job)
    assert home.client.job(int(job))["reason"] == words
    slurm_cluster.run("scontrol", "release", number)
    until(
        lambda: home.ok("pool", "logs", "uni"),
        "the worker's log is not shown",
        lambda text: "worker.connected" in text or "link" in text,
    )


def test_no_job_outlives_the_slurm_job_of_its_worker(
    home: GrassHome, slurm_cluster: SlurmCluster, add: Callable[..., str], folder: Path
) -> None:
    add()
    told = folder / "pid"
    line = f"(setsid sleep 600 & echo $!) > {told}.new; mv {told}.new {told}; sleep 600"
    home.enqueue("sh", "-c", line)
    until(told.exists, "the job does not start")
    (number,) = slurm_jobs(slurm_cluster, folder, "R")
    slurm_cluster.run("scancel", number)
    until(lambda: not alive(int(told.read_text())), "a process of the job lives on")


def test_a_broker_killed_after_sbatch_finds_its_pilot_again(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path, tmp_path: Path
) -> None:
    usual = ("--slurm", "--time=10m", "--max-workers=3", "--idle=1m")
    home.ok("pool", "add", "uni", *usual, f"--folder={folder}")
    home.ok("stop")
    (port,) = free_ports(1)
    hosted = (f"--bind=127.0.0.1:{port}", "--advertise=127.0.0.1", "--no-worker")
    doomed = subprocess.Popen(
        [*home.grass, "daemon", *hosted],
        env={**home.environment, crash_points.VARIABLE: "pools.submitted"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(home.daemon_pid, "the daemon does not come up")
    home.run("enqueue", "--", "sh", "-c", f"echo ran >> {tmp_path / 'ledger'}")
    assert doomed.wait(PATIENCE_S) == -signal.SIGKILL
    assert len(slurm_jobs(slurm_cluster, folder)) == 1
    home.run("start", *hosted)
    home.wait(1)
    assert len(slurm_jobs(slurm_cluster, folder)) == 1
    assert (tmp_path / "ledger").read_text() == "ran\n"


_SSH = """#!/bin/sh
shift
echo "$*" >> {log}
exec env -u GRASS_HOME HOME={home} sh -c "$*"
"""


def test_a_broker_outside_the_cluster_asks_through_its_login_node(
    home: GrassHome, add: Callable[..., str], folder: Path, tmp_path: Path
) -> None:
    ssh, log = tmp_path / "ssh", tmp_path / "ssh.log"
    ssh.write_text(_SSH.format(log=log, home=tmp_path))
    ssh.chmod(0o755)
    inside = folder / "cluster only"
    prefixes = (f"--submit-prefix={ssh} login1", "--worker-prefix=env IN_BOX=yes")
    add(*prefixes, f"--python={sys.executable}", f"--folder={inside}")
    job = home.enqueue("sh", "-c", f"echo $IN_BOX | tee {tmp_path / 'ledger'}")
    home.wait(job)
    assert (tmp_path / "ledger").read_text() == "yes\n"
    words = log.read_text()
    assert "sbatch" in words
    assert "umask 077" in words
    assert stat.S_IMODE(inside.stat().st_mode) == 0o700
    assert "token" not in words
    until(lambda: pilots(home), "the pilot stays", lambda x: not x)
    read = home.run("logs", str(job))
    assert read.returncode == 4
    assert f"is on the cluster: {inside}/output/pilot-" in read.stderr


def test_a_login_node_that_cannot_be_reached_is_said_in_the_words_of_ssh(
    home: GrassHome, folder: Path, tmp_path: Path
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(
        "#!/bin/sh\necho 'ssh: connect to host login1: no route' >&2\nexit 255\n"
    )
    ssh.chmod(0o755)
    usual = ("--slurm", "--time=10m", "--max-workers=2", f"--folder={folder}")
    ran = home.run("pool", "add", "uni", *usual, f"--submit-prefix={ssh} login1")
    assert ran.returncode == 3
    assert ran.stderr == "grass: ssh: connect to host login1: no route\n"
    assert pools(home) == []
