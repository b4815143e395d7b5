"""Why an attempt died, where its exit alone does not tell."""

from grass.devices.readings import GpuReading
from grass.keeper.protocol import ExitEntry
from grass.model.resources import Allocation
from grass.worker.core.gpu_attribution import KINDS

SIGKILL = 9
OUT_OF_MEMORY = "the machine ran out of memory, and the kernel killed it"


def with_cause(
    entry: ExitEntry,
    allocation: Allocation,
    gpus: tuple[GpuReading, ...],
    *,
    out_of_memory: bool,
) -> ExitEntry:
    """Add the reason of a failure that has none: no memory left, or a faulty GPU.

    With `out_of_memory` the kernel has killed a process for want of memory just now. It
    does not say which one, so only a SIGKILL counts that grass did not send.
    """
    if entry.reason is not None or entry.lost or entry.code == 0:
        return entry
    if out_of_memory and entry.signal == SIGKILL:
        return entry._replace(reason=OUT_OF_MEMORY)
    held = {unit for kind in KINDS for unit in allocation.get(kind, ())}
    for gpu in gpus:
        if gpu.fault is not None and gpu.unit in held:
            return entry._replace(reason=f"gpu {gpu.unit}: {gpu.fault}")
    return entry
