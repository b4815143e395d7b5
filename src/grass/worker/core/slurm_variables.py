"""Slurm's variables, for a job whose script has `#SBATCH` lines.

They have the meanings that Slurm gives them, and those that Slurm sets only where an
option is given are set only then. A job runs as one task on one node.

A worker may itself be a job of Slurm, the pilot of a pool. Then the values are those of
the job, except for its node and `SLURM_JOBID`, the old name of `SLURM_JOB_ID`: this
keeps the id of the pilot, which is the one that `srun` needs. The worker puts an `srun`
into the job's PATH that uses it.
"""

from collections.abc import Mapping

from grass.config import SLURM_VARIABLES
from grass.link.messages import Start
from grass.model.amount_text import WHOLE
from grass.model.amounts import bytes_of_amount
from grass.model.jobs.placeholders import unit_names
from grass.model.jobs.sbatch import SbatchScript

_OF_THE_PILOT = (
    *("SLURMD_NODENAME", "SLURM_JOBID"),
    *("SLURM_JOB_NODELIST", "SLURM_NODELIST"),
)
_GPU_OPTIONS = ("gpus", "gpus-per-node", "gpus-per-task")
_TASK_OPTIONS = {"ntasks", "ntasks-per-node"}
_ONE_TASK = {
    **dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), "1"),
    **dict.fromkeys(("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"), "0"),
    "SLURM_GTIDS": "0",
    "SLURM_TASKS_PER_NODE": "1",
}
_MIB = 2**20

Variables = Mapping[str, str]


def without_slurm_job(base: Variables) -> dict[str, str]:
    """Return variables without those of another job of Slurm or of Grass."""
    return {name: one for name, one in base.items() if name not in SLURM_VARIABLES}


def slurm_variables(
    start: Start, script: SbatchScript, node: str, pilot: Variables
) -> dict[str, str]:
    """Return what Slurm would set for a job; `pilot` has the same of this worker."""
    own = {
        **_ONE_TASK,
        **dict.fromkeys(("SLURM_JOB_ID", "SLURM_JOBID"), str(start.job)),
        **dict.fromkeys(("SLURM_JOB_NODELIST", "SLURM_NODELIST"), node),
        "SLURMD_NODENAME": node,
        "SLURM_JOB_NAME": start.name,
        "SLURM_JOB_PARTITION": start.queue,
        "SLURM_SUBMIT_DIR": script.directory,
        "SLURM_SUBMIT_HOST": script.host,
        **_array(start, script),
        **_amounts(start, script),
    }
    if start.number > 1:
        own["SLURM_RESTART_COUNT"] = str(start.number - 1)
    if not _TASK_OPTIONS.isdisjoint(script.options):
        own |= {"SLURM_NTASKS": "1", "SLURM_NPROCS": "1"}
    own |= {name: pilot[name] for name in _OF_THE_PILOT if name in pilot}
    return {name: value for name, value in own.items() if value}


def file_values(start: Start, own: Variables) -> dict[str, str]:
    """Return what may stand in braces in a path of output: `%A` and `%N` of Slurm."""
    first = start.job if start.array is None else start.array
    node = own.get("SLURMD_NODENAME", "")
    return {"SLURM_ARRAY_JOB_ID": str(first), "SLURMD_NODENAME": node}


def _array(start: Start, script: SbatchScript) -> dict[str, str]:
    tasks = script.tasks
    if start.index is None or tasks is None:
        return {}
    return {
        "SLURM_ARRAY_JOB_ID": str(start.job if start.array is None else start.array),
        "SLURM_ARRAY_TASK_ID": str(start.index),
        "SLURM_ARRAY_TASK_COUNT": str(tasks.count),
        "SLURM_ARRAY_TASK_MIN": str(tasks.first),
        "SLURM_ARRAY_TASK_MAX": str(tasks.last),
        "SLURM_ARRAY_TASK_STEP": str(tasks.step),
    }


def _amounts(start: Start, script: SbatchScript) -> dict[str, str]:
    units = start.allocation
    cores = max(1, sum(units.get("cpu", {}).values()) // WHOLE)
    own = dict.fromkeys(("SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE"), str(cores))
    if start.threads is not None:
        own["SLURM_CPUS_PER_TASK"] = str(start.threads)
    count = len(units.get("gpu", {}))
    if count:
        own["SLURM_JOB_GPUS"] = unit_names(units)["gpu"]
        own["SLURM_GPUS_ON_NODE"] = str(count)
        given = [name for name in _GPU_OPTIONS if name in script.options]
        own |= {f"SLURM_{name.upper().replace('-', '_')}": str(count) for name in given}
    memory = bytes_of_amount(sum(units.get("ram", {}).values())) // _MIB
    if memory:
        name, parts = _memory_unit(script, cores, count)
        own[name] = str(memory // parts)
    return own


def _memory_unit(script: SbatchScript, cores: int, gpus: int) -> tuple[str, int]:
    """Return the one variable for memory, and into how many parts it is divided."""
    if "mem-per-cpu" in script.options:
        return "SLURM_MEM_PER_CPU", cores
    if "mem-per-gpu" in script.options and gpus:
        return "SLURM_MEM_PER_GPU", gpus
    return "SLURM_MEM_PER_NODE", 1
