"""Slurm's variables of a job whose script has `#SBATCH` lines."""

from typing import Any

from grass.config import MARKER, SLURM_VARIABLES, user_environment
from grass.keeper.protocol import StartVerb
from grass.link.messages import Start
from grass.model.amount_text import WHOLE
from grass.model.jobs.sbatch import SbatchScript, TaskRange
from grass.worker.core.prepare import Surroundings, start_verb

AROUND = Surroundings("/out", "/home/me", "/bin/bash", {"PATH": "/bin"}, name="pc")
PILOT = {
    "SLURM_CLUSTER_NAME": "uni",
    "SLURM_JOBID": "4711",
    "SLURM_JOB_ID": "4711",
    "SLURM_JOB_NODELIST": "n17",
    "SLURM_NODELIST": "n17",
    "SLURMD_NODENAME": "n17",
    "SLURM_JOB_GPUS": "0,1",
    "SLURM_MEM_PER_CPU": "100",
}
IN_PILOT = AROUND._replace(
    environment={"PATH": "/bin", **PILOT}, of_engine=PILOT, srun_folder="/srun"
)
SCRIPT = SbatchScript(("array",), "/home/me/work", "login", TaskRange(3, 2, 6, 2))
PLAIN = SbatchScript(directory="/w", host="login")


def verb(around: Surroundings = AROUND, **fields: Any) -> StartVerb:
    start: dict[str, Any] = {
        "attempt": f"{'a' * 16}.9.1",
        "job": 9,
        "number": 1,
        "name": "fit",
        "project": "thesis",
        "words": ("bash", "fit.sh"),
        "shell": False,
        "allocation": {"cpu": {"0": WHOLE, "1": WHOLE}, "ram": {"ram": WHOLE // 2}},
        "queue": "night",
        "sbatch": PLAIN,
    }
    return start_verb(Start(**{**start, **fields}), around)


def slurm_of(found: StartVerb) -> dict[str, str]:
    return {name: one for name, one in found.env.items() if name in SLURM_VARIABLES}


def test_a_member_of_an_array_has_the_variables_of_slurm() -> None:
    found = slurm_of(verb(sbatch=SCRIPT, index=4, array=8, threads=2))
    assert found == {
        "SLURMD_NODENAME": "pc",
        "SLURM_ARRAY_JOB_ID": "8",
        "SLURM_ARRAY_TASK_COUNT": "3",
        "SLURM_ARRAY_TASK_ID": "4",
        "SLURM_ARRAY_TASK_MAX": "6",
        "SLURM_ARRAY_TASK_MIN": "2",
        "SLURM_ARRAY_TASK_STEP": "2",
        "SLURM_CPUS_ON_NODE": "2",
        "SLURM_CPUS_PER_TASK": "2",
        "SLURM_GTIDS": "0",
        "SLURM_JOBID": "9",
        "SLURM_JOB_CPUS_PER_NODE": "2",
        "SLURM_JOB_ID": "9",
        "SLURM_JOB_NAME": "fit",
        "SLURM_JOB_NODELIST": "pc",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_JOB_PARTITION": "night",
        "SLURM_LOCALID": "0",
        "SLURM_MEM_PER_NODE": "512",
        "SLURM_NNODES": "1",
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": "pc",
        "SLURM_PROCID": "0",
        "SLURM_SUBMIT_DIR": "/home/me/work",
        "SLURM_SUBMIT_HOST": "login",
        "SLURM_TASKS_PER_NODE": "1",
    }


def test_some_are_set_only_for_the_option_or_the_attempt_they_are_about() -> None:
    options = ("ntasks", "gpus-per-node", "mem-per-cpu")
    script = SbatchScript(options, "/w", "login")
    units = {"gpu": {"0": WHOLE, "3": WHOLE}, "ram": {"ram": WHOLE}}
    more = slurm_of(verb(sbatch=script, allocation=units, number=3))
    assert more["SLURM_NTASKS"] == more["SLURM_NPROCS"] == "1"
    assert more["SLURM_JOB_GPUS"] == "0,3"
    assert more["SLURM_GPUS_ON_NODE"] == more["SLURM_GPUS_PER_NODE"] == "2"
    assert more["SLURM_MEM_PER_CPU"] == "1024"
    assert more["SLURM_RESTART_COUNT"] == "2"
    left = {"SLURM_NTASKS", "SLURM_JOB_GPUS", "SLURM_RESTART_COUNT"}
    assert left.isdisjoint(slurm_of(verb()))
    assert {"SLURM_MEM_PER_NODE", "SLURM_GPUS"}.isdisjoint(more)


def test_a_job_without_such_lines_has_none() -> None:
    assert slurm_of(verb(sbatch=None, index=1, array=8)) == {}
    caller = {"SLURM_JOB_ID": "salloc", "PATH": "/bin"}
    assert slurm_of(verb(sbatch=None, base_env=caller)) == {"SLURM_JOB_ID": "salloc"}


def test_those_of_a_surrounding_job_are_replaced_and_an_explicit_env_wins() -> None:
    caller = {
        "SLURM_ARRAY_TASK_ID": "7",
        "SLURM_JOB_ID": "7",
        "SLURM_CONF": "/etc/s",
        "PATH": "/bin",
    }
    found = verb(base_env=caller, env=(("SLURM_PROCID", "5"),)).env
    assert "SLURM_ARRAY_TASK_ID" not in found
    assert (found["SLURM_JOB_ID"], found["SLURM_PROCID"]) == ("9", "5")
    assert (found["SLURM_CONF"], found["PATH"]) == ("/etc/s", "/bin")


def test_a_job_enqueued_by_such_a_job_does_not_inherit_them() -> None:
    inner = user_environment({**verb().env, MARKER: "x", "SLURM_CONF": "/etc/s"})
    assert SLURM_VARIABLES.isdisjoint(inner)
    assert inner["SLURM_CONF"] == "/etc/s"
    within = {**PILOT, MARKER: "x", "GRASS_JOB_ID": "9"}
    assert user_environment(within) == PILOT


def test_in_a_pilot_the_values_are_the_jobs_and_the_node_is_the_pilots() -> None:
    for base in (None, {"PATH": "/usr/bin", "SLURM_NTASKS": "8"}):
        found = verb(IN_PILOT, base_env=base).env
        assert found["SLURM_JOB_ID"] == "9"
        assert (found["SLURM_JOBID"], found["SLURMD_NODENAME"]) == ("4711", "n17")
        assert found["SLURM_CLUSTER_NAME"] == "uni"
        assert found["SLURM_MEM_PER_NODE"] == "512"
        absent = {"SLURM_JOB_GPUS", "SLURM_MEM_PER_CPU", "SLURM_NTASKS"}
        assert absent.isdisjoint(found)
        assert found["PATH"].startswith("/srun:")
    assert verb(IN_PILOT, sbatch=None).env.items() >= PILOT.items()


def test_paths_of_output_may_name_the_array_and_the_node() -> None:
    path = "/o/{SLURM_ARRAY_JOB_ID}_{index}.{SLURMD_NODENAME}"
    member = verb(output=path, stderr=path, sbatch=SCRIPT, index=4, array=8)
    assert (member.output, member.stderr) == ("/o/8_4.pc", "/o/8_4.pc")
    assert verb(output="/o/{SLURM_ARRAY_JOB_ID}").output == "/o/9"
    assert verb(output=path, sbatch=None, index=4, array=8).output != "/o/8_4.pc"
