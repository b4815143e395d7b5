"""Finding a machine's CPU cores, memory and GPUs, without configuration."""

import os

from grass.devices.nvml import gpus
from grass.model.amounts import GIB, WHOLE, amount_of_bytes
from grass.model.worker import Found, Unit


def found_units() -> Found:
    """Return every unit this machine has: `cpu`, `ram`, and with NVML `gpu`, `vram`."""
    cores = sorted(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    found: Found = {
        "cpu": {str(core): Unit(WHOLE) for core in cores},
        "ram": {"0": Unit(amount_of_bytes(memory), {"bytes": memory})},
    }
    devices = gpus()
    if devices:
        found["gpu"] = {
            device.number: Unit(
                WHOLE,
                {
                    "name": device.name,
                    "uuid": device.uuid,
                    "memory_gib": device.memory // GIB,
                },
            )
            for device in devices
        }
        found["vram"] = {
            device.number: Unit(amount_of_bytes(device.memory)) for device in devices
        }
    return found


def boot_id() -> str:
    """Name this boot of the kernel; attempts of another one cannot be alive."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
