"""A share of a GPU as NVIDIA's MPS enforces it: variables of jobs, and its own program.

Each GPU has a control daemon of its own, with its own folders, so that a fault on one
GPU concerns no client on another. It sees that GPU alone, as its device 0; clients name
the GPU by its UUID, because the daemon counts only what it sees.
"""

from collections.abc import Mapping
from typing import NamedTuple

from grass.keeper.protocol import MARKER, Notes, StartVerb
from grass.model.amount_text import WHOLE
from grass.model.amounts import bytes_of_amount
from grass.model.resources import GPU_KINDS, Allocation
from grass.model.worker import Unit

PIPES = "CUDA_MPS_PIPE_DIRECTORY"
LOGS = "CUDA_MPS_LOG_DIRECTORY"
DEVICES = "CUDA_VISIBLE_DEVICES"
PID_FILE = "nvidia-cuda-mps-control.pid"
SERVER = "mps:"
"""How the name of a control daemon begins among the keeper's attempts."""
MOST_OUTPUT = 2**20
_MIB = 2**20
# What an earlier one left would tell that this one is ready.
_LINE = 'mkdir -p "$1" "$2" && rm -f "$1"/* && exec "$0" -f'


class MpsPlace(NamedTuple):
    """Where MPS is on this machine."""

    program: str
    """NVIDIA's control daemon."""
    folder: str
    """Where pipes and logs are, in a folder for each GPU."""


def shared_gpu(allocation: Allocation) -> str | None:
    """Return the only GPU of which an attempt has a part; None: there is none such."""
    units = {unit for kind in GPU_KINDS for unit in allocation.get(kind, ())}
    if len(units) != 1:
        return None
    (unit,) = units
    whole = allocation.get("gpu", {}).get(unit, 0) >= WHOLE
    return None if whole else unit


def mps_variables(
    place: MpsPlace | None,
    allocation: Allocation,
    gpus: Mapping[str, Unit],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Return what makes an attempt a client of its GPU's MPS; empty: it is none.

    A job that has a server of its own keeps it.
    """
    unit = shared_gpu(allocation)
    known = None if unit is None else gpus.get(unit)
    uuid = "" if known is None else str(known.details.get("uuid", ""))
    if place is None or unit is None or not uuid or PIPES in environment:
        return {}
    folder = f"{place.folder}/{unit}"
    found = {PIPES: f"{folder}/pipe", LOGS: f"{folder}/log", DEVICES: uuid}
    share = allocation.get("gpu", {}).get(unit, 0)
    if share:
        percent = max(1, round(100 * share / WHOLE))
        found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(percent)
    memory = bytes_of_amount(allocation.get("vram", {}).get(unit, 0)) // _MIB
    if memory:
        found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={memory}M"
    return found


def without_mps(start: StartVerb) -> StartVerb:
    """Return a start that does not use MPS."""
    env = {
        name: value
        for name, value in start.env.items()
        if not name.startswith("CUDA_MPS_")
    }
    return start._replace(env=env)


def control_start(place: MpsPlace, unit: str, client: StartVerb) -> StartVerb:
    """Return the start of a GPU's control daemon, for its first client."""
    pipes, logs = client.env[PIPES], client.env[LOGS]
    name = f"{SERVER}{unit}"
    env = {
        MARKER: name,
        "PATH": client.env.get("PATH", "/usr/bin:/bin"),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **{key: client.env[key] for key in (PIPES, LOGS, DEVICES)},
    }
    return StartVerb(
        id=name,
        argv=["/bin/sh", "-c", _LINE, place.program, pipes, logs],
        env=env,
        cwd="/",
        umask=0o077,
        output=f"{place.folder}/{unit}/control.out",
        grace=5.0,
        max_output=MOST_OUTPUT,
        own_output=True,
        meta=Notes({}),
    )
