"""An `srun` for jobs in a pilot whose `SLURM_JOB_ID` is their own.

Slurm's `srun` takes the allocation in which it runs from that variable: it would ask
for another job, and might find one. So such jobs have a folder first in their PATH with
an `srun` that runs Slurm's own in the pilot's allocation, which is in `SLURM_JOBID`.
What it starts gets the job's own id and GPUs again, from Slurm's prolog of tasks.
"""

from pathlib import Path

_SRUN = """\
#!/bin/sh
# Runs Slurm's srun in the allocation of this machine, with the job's own variables.
own=${0%/*}
program=$(
    others=
    # A relative or empty element would find what lies in the job's directory.
    set -f
    IFS=:
    for folder in $PATH; do
        case $folder in (/*) [ "$folder" -ef "$own" ] || others=$others:$folder ;; esac
    done
    PATH=${others#:}
    command -v srun
)
case $program in
/*) ;;
*)
    echo "srun: not found in PATH: add the full path of the folder of Slurm's" >&2
    exit 127
    ;;
esac
if [ "$program" -ef "$0" ]; then
    echo "srun: $program runs this srun again: put Slurm's before it in PATH" >&2
    exit 127
fi
GRASS_SRUN_GPUS=${CUDA_VISIBLE_DEVICES-}
: "${SLURM_TASK_PROLOG=$own/task-prolog}"
export GRASS_SRUN_GPUS SLURM_TASK_PROLOG
SLURM_JOB_ID=$SLURM_JOBID exec "$program" "$@"
"""
_TASK_PROLOG = """\
#!/bin/sh
# Slurm sets what this prints for each task of srun.
[ -z "$GRASS_JOB_ID" ] || echo "export SLURM_JOB_ID=$GRASS_JOB_ID"
[ -z "${GRASS_SRUN_GPUS+set}" ] || echo "export CUDA_VISIBLE_DEVICES=$GRASS_SRUN_GPUS"
"""


def write_srun(folder: Path) -> str:
    """Write the programs, and return their folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in {"srun": _SRUN, "task-prolog": _TASK_PROLOG}.items():
        # Jobs may be running the one that is there.
        written = folder / f"{name}.new"
        written.write_text(text)
        written.chmod(0o700)
        written.replace(folder / name)
    return str(folder)
