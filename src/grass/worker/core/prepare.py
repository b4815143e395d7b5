"""From a `Start` to what the keeper runs.

Paths are composed here, and no file is looked at. The whole environment of a job is
made here; later wins: the base, the queue's, what grass sets, `--env`, leading
`NAME=value` words.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from grass.config import CHANNEL_VARIABLE, MARKER, OWN_PORT, RENDEZVOUS
from grass.keeper.protocol import Notes, StartVerb
from grass.link.messages import Start
from grass.model.amount_text import WHOLE
from grass.model.amounts import bytes_of_amount
from grass.model.gpu_details import visible_devices
from grass.model.jobs.commands import safe_file_name, split_assignments
from grass.model.jobs.default_names import script_of
from grass.model.jobs.params import variable
from grass.model.jobs.placeholders import fill, fill_command, unit_names, values_of
from grass.model.jobs.signals import limit_signal
from grass.model.jobs.spec import CHANNEL, NO_INPUT
from grass.model.resources import GPU_KINDS, Allocation
from grass.model.worker import Unit
from grass.worker.core.framework_limits import framework_limits
from grass.worker.core.mps_limits import PIPES, MpsPlace, mps_variables, shared_gpu
from grass.worker.core.slurm_variables import (
    file_values,
    slurm_variables,
    without_slurm_job,
)
from grass.worker.core.task_starts import TaskPlace, task_verb

_NOT_IN_A_NAME = re.compile(r"[^A-Z0-9]")
DEFAULT_UMASK = 0o022
DEFAULT_WINDOW = (24, 80)
TASKS_IN_A_FOLDER = 1000
ENGINES = ("SLURM", "PBS_", "LSB_", "SGE_")
"""How the variables begin that engines set in their jobs."""
PYTHON = "python"
"""The first word of a task host, which only its worker knows the interpreter for."""


class Surroundings(NamedTuple):
    """What a worker offers its jobs."""

    output_folder: str
    home: str
    shell: str
    environment: Mapping[str, str]
    """What jobs have whose caller's variables are not sent."""
    input_host: tuple[str, ...] = ()
    """The words that run the host of a job which is given input."""
    input_folder: str = ""
    """Where such jobs have their sockets."""
    gpus: Mapping[str, Unit] = {}
    """The GPUs that were found, with their details."""
    port: int = 0
    """A TCP port for the next job that has a GPU; 0: none."""
    gpu_memory: Mapping[str, int] = {}
    """The memory of each GPU, in amounts."""
    mps: MpsPlace | None = None
    """Where MPS is; None: it is not installed."""
    blob_folder: str = ""
    """Where the blobs are that tasks name; empty: none are fetched."""
    most_blob_bytes: int | None = None
    """How many bytes of fetched ones stay; None: they are the broker's own."""
    of_engine: Mapping[str, str] = {}
    """What the engine that started this worker says of its job there."""
    allotted: str = ""
    """What that engine has given of this host, as `allotted_units` reads it."""
    python: str = "python3"
    """The interpreter that runs functions for other machines."""
    name: str = ""
    """The name of this worker."""
    srun_folder: str = ""
    """The folder with the `srun` of jobs in a Slurm job; empty: this is in none."""
    tells_results: bool = True
    """Whether results of tasks may go to the broker; otherwise all are files here."""


def input_socket(folder: str, attempt: str) -> str:
    """Return where input for an attempt is taken."""
    return f"{folder}/input-{safe_file_name(attempt)}"


def start_verb(start: Start, around: Surroundings) -> StartVerb:
    """Compose the keeper's start verb."""
    values = {} if start.raw else _values(start)
    assignments, words = _command(start, around)
    guest = start.guest or (None, 0)
    cwd = fill(start.cwd or around.home, values)
    slurm = _slurm(start, around)
    paths = values | file_values(start, slurm) if slurm else values
    output = _output_path(start, around, cwd, paths)
    stderr = start.stderr and _absolute(cwd, fill(start.stderr, paths))
    warning = limit_signal(start.limit_signal) if start.limit_signal else None
    environment = _environment(start, around, values, assignments, slurm)
    filled = _filled(start, words, values)
    verb = StartVerb(
        id=start.attempt,
        argv=_argv(start, filled, around.shell),
        env=environment,
        cwd=cwd,
        umask=DEFAULT_UMASK if start.umask is None else start.umask,
        output=output,
        stderr=stderr,
        grace=start.grace_s,
        time_limit=start.time_limit_s,
        max_output=start.max_output,
        own_output=start.output is None,
        nice=start.nice,
        cpus=_pinned(start),
        after=start.after,
        under=_host(start, around),
        limit_signal=None if warning is None else warning.number,
        limit_signal_before=0.0 if warning is None else warning.before_s,
        meta=_notes(start, around, output, stderr, environment),
        guest=guest[0],
        guest_ticks=guest[1],
        memory_max=_memory_limit(start),
        cpu_max=_core_limit(start),
        may_return=start.may_return and start.guest is None,
        script=None if start.shell or not filled else script_of(filled),
    )
    if start.task is None:
        return verb
    own = own_path(start, around)
    place = TaskPlace(around.python, around.blob_folder, own, around.tells_results)
    return task_verb(verb, start, place, own_variables(start, around.gpus))


def _notes(
    start: Start,
    around: Surroundings,
    output: str,
    stderr: str | None,
    environment: Mapping[str, str],
) -> Notes:
    """Return what a worker notes of an attempt; a guest has no output of its own."""
    is_guest, is_own = start.guest is not None, start.output is None
    history = f"{own_path(start, around)}.usage"
    return Notes(
        start.allocation,
        output=None if is_guest else output,
        stderr=None if is_guest else stderr,
        after=start.after,
        placed_at=start.placed_at,
        input=start.stdin != NO_INPUT and not is_guest,
        usage=None if is_own and not is_guest else history,
        port=0 if is_guest else _port_in(environment, around),
        learns=start.learns,
        enforce=(start.enforce or "") if not is_guest else "",
        mps="" if is_guest else _mps_in(start, around, environment),
        title=start.name,
    )


def _host(start: Start, around: Surroundings) -> list[str]:
    """Return the words of the host, for a job that is given input."""
    if start.stdin in (NO_INPUT, CHANNEL):
        return []
    rows, columns = start.window or DEFAULT_WINDOW
    path = input_socket(around.input_folder, start.attempt)
    return [*around.input_host, path, start.stdin, str(rows), str(columns)]


def _values(start: Start) -> dict[str, str]:
    return values_of(
        id=start.job,
        name=start.name,
        project=start.project,
        index=start.index,
        params=start.params,
        attempt=start.number,
        allocation=start.allocation,
    )


def _filled(
    start: Start, words: tuple[str, ...], values: Mapping[str, str]
) -> list[str]:
    if start.raw or start.verbatim:
        return list(words)
    return fill_command(words, values, start.params, shell=start.shell)


def _command(
    start: Start, around: Surroundings
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    if start.guest is not None:
        return (), ()
    if start.stdin == CHANNEL and start.words[:1] == (PYTHON,):
        return (), (around.python, *start.words[1:])
    if start.prefix:
        return (), start.prefix + start.words
    if start.shell and len(start.words) == 1:
        return (), start.words
    return split_assignments(start.words)


def _argv(start: Start, words: list[str], shell: str) -> list[str]:
    return [start.shell_program or shell, "-c", *words] if start.shell else words


def _output_path(
    start: Start, around: Surroundings, cwd: str, values: Mapping[str, str]
) -> str:
    if start.output is not None:
        return _absolute(cwd, fill(start.output, values))
    return f"{own_path(start, around)}.log"


def own_path(start: Start, around: Surroundings) -> str:
    """Return the path of an attempt's own files, without their endings."""
    names = f"{safe_file_name(start.project)}/{safe_file_name(start.name)}"
    folder = f"{around.output_folder}/{names}"
    if start.task is not None:
        # A new folder costs the file system more than all the rest of a short task.
        return f"{folder}/{start.job // TASKS_IN_A_FOLDER}/{start.job}.{start.number}"
    return f"{folder}/{start.job}/{start.number}"


def _absolute(cwd: str, path: str) -> str:
    return str(PurePosixPath(cwd) / path)


def _environment(
    start: Start,
    around: Surroundings,
    values: Mapping[str, str],
    assignments: tuple[tuple[str, str], ...],
    slurm: Mapping[str, str],
) -> dict[str, str]:
    base = _base(start, around)
    base = without_slurm_job(base) if slurm else base
    environment = {"PYTHONUNBUFFERED": "1", **_threads(start), **base}
    for name, value in start.queue_env:
        environment[name] = fill(value, values)
    environment.update(own_variables(start, around.gpus))
    environment.update(slurm)
    for name, value in (*start.env, *assignments):
        environment[name] = fill(value, values)
    environment[MARKER] = start.attempt
    if start.stdin == CHANNEL:
        environment[CHANNEL_VARIABLE] = input_socket(around.input_folder, start.attempt)
    if around.port and not GPU_KINDS.isdisjoint(start.allocation):
        _add_rendezvous(environment, around.port)
    if start.enforce is not None:
        environment |= _limits(start.allocation, around, environment)
    if slurm and around.srun_folder and "PATH" in environment:
        environment["PATH"] = f"{around.srun_folder}:{environment['PATH']}"
    return environment


def _slurm(start: Start, around: Surroundings) -> Mapping[str, str]:
    """Return Slurm's variables, for a job whose script has `#SBATCH` lines."""
    if start.sbatch is None:
        return {}
    return slurm_variables(start, start.sbatch, around.name, around.of_engine)


def _base(start: Start, around: Surroundings) -> Mapping[str, str]:
    """Return the caller's variables, with what the engine says of this job, or ours."""
    if start.base_env is None or not around.of_engine:
        return around.environment if start.base_env is None else start.base_env
    own = start.base_env.items()
    kept = {name: one for name, one in own if not name.startswith(ENGINES)}
    return {**kept, **around.of_engine}


def _limits(
    allocation: Allocation, around: Surroundings, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that hold a job to its share of a GPU."""
    told = framework_limits(allocation, around.gpu_memory, environment)
    return told | mps_variables(around.mps, allocation, around.gpus, environment)


def _add_rendezvous(environment: dict[str, str], port: int) -> None:
    """Set where the processes of a job meet: on this machine, as all of it runs here.

    A job that is given a port of its own keeps it, and its address.
    """
    if "MASTER_PORT" not in environment:
        environment["MASTER_PORT"] = environment[OWN_PORT] = str(port)
        environment.setdefault("MASTER_ADDR", RENDEZVOUS)


def _port_in(environment: Mapping[str, str], around: Surroundings) -> int:
    return around.port if environment.get(OWN_PORT) == str(around.port) else 0


def _mps_in(start: Start, around: Surroundings, environment: Mapping[str, str]) -> str:
    """Return the GPU of whose MPS a job is a client, one that Grass runs."""
    folder = "" if around.mps is None else f"{around.mps.folder}/"
    own = start.enforce and folder and environment.get(PIPES, "").startswith(folder)
    return (shared_gpu(start.allocation) or "") if own else ""


def _memory_limit(start: Start) -> int | None:
    if start.enforce is None or start.guest is not None:
        return None
    return bytes_of_amount(sum(start.allocation.get("ram", {}).values())) or None


def _core_limit(start: Start) -> float | None:
    """Return the cores that it may use, where it has asked for some itself."""
    if start.enforce is None or start.guest is not None or start.threads is None:
        return None
    return sum(start.allocation.get("cpu", {}).values()) / WHOLE or None


def _threads(start: Start) -> dict[str, str]:
    """Return what numerical libraries read, where a job asked for cores itself."""
    return {} if start.threads is None else {"OMP_NUM_THREADS": str(start.threads)}


def own_variables(start: Start, gpus: Mapping[str, Unit]) -> dict[str, str]:
    """Return the variables that tell a job what it is and has."""
    units = unit_names(start.allocation)
    own = {
        f"GRASS_{_NOT_IN_A_NAME.sub('_', kind.upper())}": names
        for kind, names in units.items()
    }
    if start.index is not None:
        own["GRASS_ARRAY_INDEX"] = str(start.index)
    own.update((variable(name), value) for name, value in start.params.items())
    return own | {
        "GRASS_JOB_ID": str(start.job),
        "GRASS_ATTEMPT": str(start.number),
        "GRASS_NAME": start.name,
        "GRASS_PROJECT": start.project,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": _visible(start, gpus),
    }


def _visible(start: Start, gpus: Mapping[str, Unit]) -> str:
    allocation = start.allocation
    return visible_devices(gpus, allocation.get("gpu") or allocation.get("vram") or {})


def _pinned(start: Start) -> list[int] | None:
    if not start.pin:
        return None
    cores = start.allocation.get("cpu", {})
    return [int(name) for name in cores if name.isdecimal()] or None
