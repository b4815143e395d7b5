"""What a machine has: CPU cores, memory, and the GPUs that a monitor has found."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from itertools import chain, islice

from grass.devices.readings import GpuSide, GpuTopology, GpuUnit
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB, amount_of_bytes
from grass.model.gpu_details import neighbour_details
from grass.model.worker import FoundUnits, Unit


def found_units(
    gpus: Sequence[GpuUnit],
    topology: GpuTopology | None = None,
    cgroup: str | None = None,
) -> FoundUnits:
    """Return every unit of this machine: `cpu`, `ram`, and with GPUs `gpu`, `vram`.

    Of cores and memory no more than its own cgroup allows, as that of a container.
    """
    most_cores, most_memory = _limits(_own_cgroup() if cgroup is None else cgroup)
    cores = sorted(os.sched_getaffinity(0))[:most_cores]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    memory = min(memory, most_memory or memory)
    found: FoundUnits = {
        "cpu": {str(core): Unit(WHOLE) for core in cores},
        "ram": {"0": Unit(amount_of_bytes(memory), {"bytes": memory})},
    }
    if gpus:
        near = topology or GpuTopology()
        found["gpu"] = {one.unit: Unit(WHOLE, _details(one, near)) for one in gpus}
        found["vram"] = {one.unit: Unit(amount_of_bytes(one.memory)) for one in gpus}
    return found


def _own_cgroup() -> str:
    """Return the folder of this process's cgroup, of version 2."""
    with contextlib.suppress(OSError), open("/proc/self/cgroup", "rb") as file:
        for line in os.fsdecode(file.read()).splitlines():
            if line.startswith("0::"):
                return f"/sys/fs/cgroup{line[3:]}"
    return "/sys/fs/cgroup"


def _limits(cgroup: str) -> tuple[int | None, int | None]:
    """Return how many whole cores and bytes a cgroup allows; None: there is no limit.

    Less than a core counts as one, as a worker without any could run nothing.
    """
    quota, period = (*_words(f"{cgroup}/cpu.max"), "", "")[:2]
    (memory,) = (*_words(f"{cgroup}/memory.max"), "")[:1]
    limited = quota.isdecimal() and period.isdecimal() and int(period)
    cores = max(1, int(quota) // int(period)) if limited else None
    return cores, int(memory) if memory.isdecimal() else None


def _words(path: str) -> list[str]:
    """Read a file of a cgroup; the root has none, nor has version 1."""
    with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
        return file.read().split()
    return []


def allotted_units(found: FoundUnits, allotted: str) -> FoundUnits:
    """Return what an engine has given of a host: `cores,MiB,gpus`, each may be empty.

    GPUs that the engine names are there, also where no library tells of them; so are
    as many cores as it counts, where a site offers more than a host has.
    """
    cores, mib, *names = (*allotted.split(","), "")
    limited, names = dict(found), [name for name in names if name]
    if names and "gpu" not in found:
        limited["gpu"] = {name: Unit(WHOLE) for name in names}
    if cores.isdecimal():
        limited["cpu"] = _counted(found["cpu"], int(cores))
    if mib.isdecimal() and int(mib):
        memory = min(int(mib) << 20, int(found["ram"]["0"].details["bytes"]))
        limited["ram"] = {"0": Unit(amount_of_bytes(memory), {"bytes": memory})}
    return limited


def _counted(cores: Mapping[str, Unit], count: int) -> dict[str, Unit]:
    """Return so many cores: those of the host first, then numbers that it lacks."""
    missing = (str(number) for number in range(count) if str(number) not in cores)
    names = islice(chain(cores, missing), count)
    return {name: cores.get(name, Unit(WHOLE)) for name in names}


def boot_id() -> str:
    """Return the kernel's boot id; attempts of another boot cannot be alive."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _details(gpu: GpuUnit, topology: GpuTopology) -> dict[str, str | int]:
    side = topology.sides.get(gpu.unit, GpuSide())
    details = neighbour_details(topology.pairs.get(gpu.unit, {}), side.cores)
    details |= {"name": gpu.name, "uuid": gpu.uuid, "memory_gib": gpu.memory // GIB}
    return details if gpu.index is None else {**details, "index": gpu.index}
