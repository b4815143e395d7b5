"""Faults of Slurm while jobs of a pool wait and run; a ledger tells that none is lost.

What Slurm takes away is in `test_pool_losses.py`.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.pool_home import Ledger, pilots, pools, slurm_home
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.slurm import NODES, SlurmCluster


@pytest.fixture
def home(slurm_cluster: SlurmCluster, tmp_path: Path) -> Iterator[GrassHome]:
    with slurm_home(slurm_cluster, tmp_path) as made:
        yield made


@pytest.fixture
def ledger(folder: Path) -> Ledger:
    return Ledger(folder / "ledger")


@pytest.mark.daemon
def test_jobs_run_on_while_the_controller_hangs_and_dies(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path, ledger: Ledger
) -> None:
    usual = ("--slurm", "--time=10m", "--max-workers=2", "--cpus=2")
    home.ok("pool", "add", "uni", *usual, f"--folder={folder}")
    jobs = home.enqueue_array("--array=1-24", "--", "sh", "-c", ledger.line(0.3))
    until(lambda: ledger.counts("ended"), "no job has ended")
    slurm_cluster.signal_controller(signal.SIGSTOP)
    more = home.enqueue_array("--array=1-8", "--", "sh", "-c", ledger.line(0.1))
    home.wait(*jobs, *more)
    slurm_cluster.signal_controller(signal.SIGCONT)
    slurm_cluster.stop_controller()
    last = home.enqueue("sh", "-c", ledger.line(0.1))
    slurm_cluster.start_controller()
    home.wait(last)
    everyone = dict.fromkeys((*jobs, *more, last), 1)
    assert ledger.counts("began") == ledger.counts("ended") == everyone
    assert len(pilots(home)) <= 2


@pytest.mark.daemon
def test_a_site_that_begins_to_refuse_is_told_of_and_asked_again_later(
    home: GrassHome, folder: Path, ledger: Ledger, tmp_path: Path
) -> None:
    refuses = tmp_path / "refuses"
    prefix = tmp_path / "site"
    prefix.write_text(_SITE.format(file=refuses))
    prefix.chmod(0o755)
    usual = ("--slurm", "--time=10m", "--max-workers=2", f"--folder={folder}")
    home.ok("pool", "add", "uni", *usual, f"--submit-prefix={prefix}")
    refuses.touch()
    job = home.enqueue("--pool=uni", "--", "sh", "-c", ledger.line(0.1))
    (pool,) = until(
        lambda: pools(home), "no refusal is known", lambda found: found[0]["refusals"]
    )
    assert pool["words"] == "the account is closed"
    assert pool["retry_at"] is not None
    assert pool["pilots"] == []
    told = home.client.job(job)["reason"]
    assert told.startswith("pool `uni` is asked again at ")
    assert told.endswith(": the account is closed")
    refuses.unlink()
    home.ok("pool", "pause", "uni")
    home.ok("pool", "resume", "uni")
    home.wait(job)
    assert ledger.counts("ended") == {job: 1}
    assert pools(home)[0]["refusals"] == 0


@pytest.mark.daemon
def test_an_outage_is_told_of_where_a_user_looks(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path
) -> None:
    usual = ("--slurm", "--time=10m", "--max-workers=1", "--mode=per-job")
    home.ok("pool", "add", "uni", *usual, f"--folder={folder}")
    slurm_cluster.stop_controller()
    try:
        ran = home.run("enqueue", "--pool=uni", "--", "true")
        assert "pool `uni` did not say whether it would take such a" in ran.stderr
        words = "Slurm does not answer: "
        told = until(
            lambda: home.ok("explain", ran.stdout.strip()),
            "the outage is not named",
            lambda said: words in said,
        )
        assert "Unable to contact slurm controller" in told
        assert "it is asked again at " in told
        assert home.ok("pool", "show").count(words) == 2
    finally:
        slurm_cluster.start_controller()
    until(lambda: home.ok("pool", "show"), "the outage stays", lambda x: words not in x)
    until(slurm_cluster.idle_nodes, "no node came back", set(NODES).__eq__)


@pytest.mark.daemon
def test_a_job_that_is_enqueued_while_slurm_restarts_waits_and_runs(
    home: GrassHome, slurm_cluster: SlurmCluster, folder: Path, ledger: Ledger
) -> None:
    usual = ("--slurm", "--time=10m", "--max-workers=1", "--mode=per-job", "--cpus=2")
    home.ok("pool", "add", "uni", *usual, f"--folder={folder}")
    slurm_cluster.stop_controller()
    slurm_cluster.start_controller()
    ran = home.run("enqueue", "--pool=uni", "-c2", "--", "sh", "-c", ledger.line(0.1))
    assert ran.returncode == 0, ran.stderr
    assert "pool `uni` did not say whether it would take such a" in ran.stderr
    assert "Requested node configuration is not available" in ran.stderr
    home.wait(int(ran.stdout))
    assert ledger.counts("ended") == {int(ran.stdout): 1}


@pytest.mark.daemon
def test_an_enqueue_asks_a_site_once_and_waits_for_it_some_seconds(
    home: GrassHome, folder: Path, tmp_path: Path
) -> None:
    hangs, asked, prefix = tmp_path / "hangs", tmp_path / "asked", tmp_path / "site"
    prefix.write_text(_SLOW_SITE.format(hangs=hangs, asked=asked))
    prefix.chmod(0o755)
    usual = ("--slurm", "--time=10m", "--max-workers=1", "--mode=per-job")
    home.ok(
        "pool", "add", "uni", *usual, f"--folder={folder}", f"--submit-prefix={prefix}"
    )
    home.ok("pool", "pause", "uni")
    for _ in range(3):
        home.enqueue("--pool=uni", "--", "true")
    assert asked.read_text().splitlines() == ["asked"] * 2
    hangs.touch()
    ran = home.run("enqueue", "--pool=uni", "-c1", "--time-limit=1h", "--", "true")
    assert ran.stderr.startswith(
        "grass: pool `uni` did not say whether it would take such a worker: no answer"
        " within 5 s\n"
    )
    assert ran.stdout == "4\n"
    hangs.unlink()


_SLOW_SITE = """#!/bin/sh
# Runs a command of Slurm; tells how often it is asked, and may take long for that.
case "$*" in *--test-only*)
    echo asked >> {asked}
    [ -e {hangs} ] && sleep 600
esac
exec "$@"
"""
_SITE = """#!/bin/sh
# Runs a command of Slurm; while there is a file, the site takes no job.
if [ "$1" = sbatch ] && [ -e {file} ]; then
    echo "sbatch: error: the account is closed" >&2
    exit 1
fi
exec "$@"
"""
