"""Sets up the worker of this machine: its id, its devices, the environment of jobs."""

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import Coroutine
from pathlib import Path
from secrets import token_hex
from typing import Any

from grass.client.private_files import create_private, replace_private
from grass.client.worker_id_file import read_worker_id
from grass.config import Home, user_environment
from grass.daemon.hosting import Hosting
from grass.daemon.pools.pilot_variables import ALLOTTED, AWAY_LIMIT, ENDS_AT, OUTPUT
from grass.daemon.pools.srun_wrapper import write_srun
from grass.devices.gpu_monitor import GpuMonitor
from grass.devices.probe import allotted_units, boot_id, found_units
from grass.errors import GrassError
from grass.event_log import EventLog
from grass.keeper import input_host
from grass.keeper.launch import state_of
from grass.link.channel import Link
from grass.link.messages import ToBroker, ToWorker
from grass.model.usage.enforcement import GPU_MEMORY, MPS
from grass.model.worker import FoundUnits, gpu_memory, is_worker_id
from grass.settings import Settings
from grass.worker.core.admission import Admission
from grass.worker.core.hello import WorkerIdentity
from grass.worker.core.mps_limits import MpsPlace
from grass.worker.core.prepare import ENGINES, Surroundings
from grass.worker.core.usage.busy_gpus import BusyGpus
from grass.worker.core.worker_core import WorkerCore
from grass.worker.shell.agent import WorkerAgent
from grass.worker.shell.instance import has_own_name, instance_of
from grass.worker.shell.old_results import remove_old_results

log = EventLog("grass.daemon")

ID_NOTE = "worker-id"
"""In the keeper's folder: the worker's id, and the instance and boot it was used in."""
_COPIED = "-"
LONGEST_SOCKET = 108
"""How many bytes the path of a Unix socket may have, with its end."""

_SUBMISSION = ("SLURM_EXPORT_ENV", "SLURM_GET_USER_ENV")
"""How a pilot was submitted; in a job, `srun` would pass no variable to its tasks."""


async def worker(
    home: Home,
    hosting: Hosting,
    identity: str,
    link: Link[ToBroker, ToWorker],
    settings: Settings,
    blobs: tuple[str, int | None],
) -> WorkerAgent:
    """Make the agent of this machine, once its GPUs have answered.

    `blobs` is where those are that tasks name, and how many bytes of them may stay.
    """
    monitor = GpuMonitor(hosting.gpus, guard=settings.gpu_guard)
    await monitor.read()
    if monitor.units():
        # How near they are to each other is told with the next look.
        await monitor.read()
    if hosting.gpus is not None:
        named = ",".join(one.unit for one in monitor.units())
        log.info("gpus.managed", gpus=named or "none")
    found = found_units(monitor.units(), monitor.topology())
    found = allotted_units(found, os.environ.get(ALLOTTED, ""))
    mps = _mps(home)
    who = WorkerIdentity(
        identity,
        hosting.machine,
        boot_id(),
        found,
        hosting.labels,
        home_instance(home),
        (GPU_MEMORY,) if mps is None else (MPS, GPU_MEMORY),
        _ends_at(),
    )
    python = settings.task_python or sys.executable
    folder, most = blobs
    around = _surroundings(home, hosting, found)._replace(
        mps=mps,
        python=python,
        blob_folder=folder,
        most_blob_bytes=most,
        # Only files are removed when they are older than wanted.
        tells_results=settings.keep_results_s is None,
    )
    admission = Admission(BusyGpus(settings.gpu_busy))
    core = WorkerCore(who, around, hosting.lease_s, admission)
    return WorkerAgent(
        core, link, home.keeper, _output(home), hosting.log_format or "text", monitor
    )


async def with_old_results_removed(
    home: Home, settings: Settings, working: Coroutine[Any, Any, None]
) -> None:
    """Run the worker, and beside it remove results that are older than wanted."""
    keep_s = settings.keep_results_s
    if keep_s is None:
        await working
        return
    removing = asyncio.ensure_future(remove_old_results(_output(home), keep_s))
    try:
        await working
    finally:
        removing.cancel()


def _surroundings(home: Home, hosting: Hosting, found: FoundUnits) -> Surroundings:
    engine = _of_engine()
    is_of_slurm = "SLURM_JOB_ID" in engine
    srun = write_srun(Path(home.folder, "bin")) if is_of_slurm else ""
    return Surroundings(
        output_folder=_output(home),
        home=os.path.expanduser("~"),
        shell=shell(),
        environment=_job_environment(),
        name=hosting.machine,
        of_engine=engine,
        srun_folder=srun,
        allotted=os.environ.get(ALLOTTED, ""),
        input_host=(sys.executable, "-I", "-S", input_host.__file__),
        input_folder=home.keeper,
        gpus=found.get("gpu", {}),
        gpu_memory=gpu_memory(found),
    )


def _job_environment() -> dict[str, str]:
    """Return what jobs have by default: nothing of what a pilot was told."""
    own = (ALLOTTED, AWAY_LIMIT, ENDS_AT, OUTPUT)
    found = user_environment(os.environ)
    return {
        name: value
        for name, value in found.items()
        if name not in own and name not in _SUBMISSION
    }


def _of_engine() -> dict[str, str]:
    """Return what an engine says of the job that this daemon is."""
    if ENDS_AT not in os.environ:
        return {}
    found = os.environ.items()
    return {
        name: value
        for name, value in found
        if name.startswith(ENGINES) and name not in _SUBMISSION
    }


def _output(home: Home) -> str:
    """Return where output goes: of a pilot, to where it stays when that has left."""
    return os.environ.get(OUTPUT) or home.output


def _ends_at() -> float | None:
    """Return when the engine that started this daemon ends it, if one did."""
    text = os.environ.get(ENDS_AT, "")
    return float(text) if text else None


def _mps(home: Home) -> MpsPlace | None:
    """Return where MPS is, if it is installed and its sockets can have their paths."""
    program = shutil.which("nvidia-cuda-mps-control")
    folder = os.path.join(home.folder, "mps")
    longest = os.path.join(folder, "000.00", "pipe", "control_privileged")
    fits = len(os.fsencode(longest)) < LONGEST_SOCKET
    return MpsPlace(program, folder) if program and fits else None


def shell() -> str:
    """Return the shell that runs shell lines: bash where there is one."""
    return shutil.which("bash") or shutil.which("sh") or "/bin/sh"


def home_folder() -> str:
    """Return the user's own folder, or the root where there is none."""
    home = os.path.expanduser("~")
    return home if os.path.isdir(home) else "/"


def home_instance(home: Home) -> str:
    """Return what distinguishes this home from copies with the same worker id."""
    return instance_of(home.keeper)


def worker_id(home: Home) -> str:
    """Return this home's own random id, made at the first start."""
    known = read_worker_id(home)
    if not known:
        # Several processes may make one at the same time; the first wins.
        create_private(home.worker_id, (_lost_id(home) or token_hex(8)) + "\n")
        known = read_worker_id(home)
        assert known
        note_id(home, known)
    else:
        _note_again(home, known)
    return known


def _note_again(home: Home, id: str) -> None:
    """Note an id in this boot, and in a home from before there were notes.

    A copy of such a home gets a note without the id: it is recognized only once.
    """
    noted = _noted(home)
    if not noted:
        note_id(home, id if has_own_name(home.keeper) else _COPIED)
    elif noted[:2] == [id, home_instance(home)]:
        note_id(home, id)


def note_id(home: Home, id: str) -> None:
    """Note an id that is this home's own, for the case that its file is lost.

    That of a copied home is not noted: it is to go when its file is removed.
    """
    words = [id, home_instance(home), boot_id()]
    if _noted(home) != words:
        with contextlib.suppress(GrassError):
            replace_private(os.path.join(home.keeper, ID_NOTE), " ".join(words) + "\n")


def _noted(home: Home) -> list[str]:
    with contextlib.suppress(OSError, UnicodeError):
        return Path(home.keeper, ID_NOTE).read_text().split()
    return []


def _lost_id(home: Home) -> str | None:
    """Return the id that this home had, if jobs run that were started under it.

    A copy of the home is another instance, and one of the whole disk another boot:
    they get an id of their own, and so does a home without running jobs.
    """
    id, *rest = _noted(home) or [""]
    if not is_worker_id(id) or rest != [home_instance(home), boot_id()]:
        return None
    keeper = state_of(home.keeper)
    attempts = [] if keeper is None else keeper.attempts
    return id if any(one.state != "exited" for one in attempts) else None
