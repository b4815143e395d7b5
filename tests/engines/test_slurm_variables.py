"""Scripts with `#SBATCH` lines: what they find in Grass is what Slurm gives them."""

import subprocess
from pathlib import Path

import pytest

from grass.config import SLURM_VARIABLES
from grass.daemon.pools.srun_wrapper import write_srun
from tests.engines.pool_home import slurm_home, slurm_jobs
from tests.support.fixtures import lasting, shared
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S
from tests.support.slurm import SlurmCluster

__all__ = ["lasting", "shared"]

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=fit --array=2-8:3 --cpus-per-task=2 --ntasks=1 --mem=200
#SBATCH --output={folder}/%x-%A_%a.txt
env | grep ^SLURM
"""
WITH_SRUN = """\
#!/bin/bash
#SBATCH --array=5,7 --cpus-per-task=1 --mem=100
echo outer $SLURM_JOB_ID
srun sh -c 'echo inner $SLURM_JOB_ID $SLURM_JOBID $SLURM_ARRAY_TASK_ID'
CUDA_VISIBLE_DEVICES=7 srun sh -c 'srun --overlap echo nested $CUDA_VISIBLE_DEVICES'
"""
OTHERWISE_NAMED = {"SLURM_JOB_PARTITION", "SLURMD_NODENAME"} | {
    "SLURM_JOB_NODELIST",
    "SLURM_NODELIST",
}


def variables(path: Path) -> dict[str, str]:
    found = dict(line.split("=", 1) for line in path.read_text().splitlines())
    return {name: one for name, one in found.items() if name in SLURM_VARIABLES}


@pytest.mark.daemon
def test_an_array_has_the_variables_that_slurm_sets(
    slurm_cluster: SlurmCluster, shared: GrassHome, tmp_path: Path
) -> None:
    files = [tmp_path / "theirs", tmp_path / "ours"]
    for folder in files:
        folder.mkdir()
        (folder / "job.sh").write_text(SCRIPT.format(folder=folder))
    theirs, ours = files
    slurm_cluster.run("sbatch", "-W", f"--chdir={theirs}", str(theirs / "job.sh"))
    shared.ok("create-queue", "wide", "--json", "{cpu:2}")
    enqueued = shared.ok("enqueue", "wide", "--", "bash", str(ours / "job.sh"))
    first = int(enqueued.split("-")[0])
    shared.ok("wait", enqueued.strip())
    named = [f"fit-{first}_{index}.txt" for index in (2, 5, 8)]
    assert sorted(one.name for one in ours.glob("*.txt")) == named
    for number, index in enumerate((2, 5, 8)):
        (path,) = theirs.glob(f"fit-*_{index}.txt")
        wanted, found = variables(path), variables(ours / named[number])
        assert found.keys() == wanted.keys()
        same = found.keys() - OTHERWISE_NAMED - {"SLURM_SUBMIT_DIR"}
        ids = {"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID"}
        assert {one: found[one] for one in same - ids} == {
            one: wanted[one] for one in same - ids
        }
        assert found["SLURM_ARRAY_JOB_ID"] == str(first)
        assert found["SLURM_JOB_ID"] == str(first + number)


def run_wrapper(cwd: Path, path: str) -> subprocess.CompletedProcess[str]:
    """Call the wrapper of `cwd`'s neighbour; `{}` in the path is its folder."""
    own = write_srun(cwd.parent / "own")
    env = {"PATH": path.format(own), "SLURM_JOBID": "5", "SLURM_JOB_ID": "7"}
    return subprocess.run(
        [f"{own}/srun", "word"],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def fake_srun(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / "srun"
    program.write_text('#!/bin/sh\necho "$0 $SLURM_JOB_ID $1"\n')
    program.chmod(0o700)
    return program


@pytest.mark.parametrize(
    "path", ["{0}:%s", "%s:{0}", "{0}:{0}:%s", "{0}/:%s", ":{0}:.::%s:"]
)
def test_the_srun_of_a_pilot_never_runs_one_in_the_jobs_directory(
    tmp_path: Path, path: str
) -> None:
    fake_srun(tmp_path / "work")
    slurms = fake_srun(tmp_path / "slurm *")
    done = run_wrapper(tmp_path / "work", path.replace("%s", str(slurms.parent)))
    assert (done.stderr, done.returncode) == ("", 0)
    program, *words = done.stdout.rsplit(maxsplit=2)
    assert (Path(program), words) == (slurms, ["5", "word"])


@pytest.mark.parametrize("path", ["{0}", "{0}:", ".:{0}", "", "{0}:work"])
def test_the_srun_of_a_pilot_without_slurms_fails_with_one_line(
    tmp_path: Path, path: str
) -> None:
    fake_srun(tmp_path / "work")
    done = run_wrapper(tmp_path / "work", path)
    assert (done.stdout, done.returncode) == ("", 127)
    (line,) = done.stderr.splitlines()
    assert line.startswith("srun: not found in PATH: add ")


def test_the_srun_of_a_pilot_does_not_run_itself_by_another_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "linked").mkdir()
    linked = tmp_path / "linked" / "srun"
    linked.symlink_to(tmp_path / "own" / "srun")
    done = run_wrapper(tmp_path / "work", f"{{0}}:{linked.parent}")
    assert (done.stdout, done.returncode) == ("", 127)
    assert done.stderr.startswith(f"srun: {linked} runs this srun again: ")


@pytest.mark.daemon
def test_in_a_pilot_srun_runs_in_its_allocation_with_the_jobs_variables(
    slurm_cluster: SlurmCluster, tmp_path: Path, folder: Path
) -> None:
    script = tmp_path / "job.sh"
    script.write_text(WITH_SRUN)
    with slurm_home(slurm_cluster, tmp_path) as made:
        usual = ("--slurm", "--time=10m", "--max-workers=1", "--memory=400M")
        made.ok("pool", "add", "uni", *usual, f"--folder={folder}")
        first = int(made.ok("enqueue", "bash", str(script)).split("-")[0])
        ran = made.run("wait", f"{first}-{first + 1}")
        assert ran.returncode == 0, made.run("logs", str(first)).stdout
        (pilot,) = slurm_jobs(slurm_cluster, folder)
        for job, index in ((first, 5), (first + 1, 7)):
            assert made.ok("logs", str(job)).splitlines() == [
                f"outer {job}",
                f"inner {job} {pilot} {index}",
                "nested 7",
            ]
