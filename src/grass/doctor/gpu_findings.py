"""The driver, its library, the GPUs, MPS: without a GPU nothing is wrong."""

import os
import shutil
from collections.abc import Iterator
from glob import glob
from pathlib import Path

from grass.devices.gpu_check import GpuLook, look
from grass.devices.gpu_monitor import library_present
from grass.devices.visible import chosen_units
from grass.doctor.finding import Finding, note, ok, wrong
from grass.model.amounts import GIB

PCI, DRIVER, NODES = "/sys/bus/pci/devices", "/proc/driver/nvidia", "/dev/nvidia"
_NVIDIA, _DISPLAY = "0x10de", "0x03"
_CONTAINER = "run it with `--gpus all` and NVIDIA's container toolkit"
_INSTALL = "install NVIDIA's driver for this kernel, then restart the machine"
_PIDS = "run the container with `--pid=host`"


def gpu_findings(managed: str | None) -> Iterator[Finding]:
    """Look at all that GPUs need; `managed` is what --gpus was given."""
    cards, has_library = _cards(), library_present()
    if not (cards or has_library or os.path.exists(DRIVER)):
        yield ok("driver", "no NVIDIA GPU is here, so none is needed")
        return
    yield _driver(cards)
    yield from _permissions()
    if not has_library:
        fix = _CONTAINER if os.path.exists(DRIVER) else _INSTALL
        yield wrong("nvml", "libnvidia-ml.so.1 cannot be loaded", fix)
        return
    seen = look()
    yield _library(seen, cards)
    faults = seen.unnamed | {one.unit: one.fault for one in seen.readings if one.fault}
    for unit, fault in faults.items():
        fix = "see `nvidia-smi -q` and the kernel's log; a reset may help"
        yield wrong(f"gpu {unit}", fault or "it does not tell who it is", fix)
    if any(reading.pids_hidden for reading in seen.readings):
        yield note("gpu pids", "processes on GPUs are told without their pids", _PIDS)
    if managed is not None:
        yield _managed(managed, seen)
    yield _mps()


def _cards() -> int:
    """Count the NVIDIA display devices on the PCI bus."""
    found = 0
    for device in glob(f"{PCI}/*"):
        vendor, kind = _text(f"{device}/vendor"), _text(f"{device}/class")
        found += vendor == _NVIDIA and kind.startswith(_DISPLAY)
    return found


def _driver(cards: int) -> Finding:
    version = _text(f"{DRIVER}/version").partition("\n")[0]
    if version:
        words = version.split()
        number = next((one for one in words if one[:1].isdigit() and "." in one), "")
        return ok("driver", f"NVIDIA {number}".strip())
    if cards:
        return wrong(
            "driver", f"{cards} NVIDIA GPUs, and no driver is loaded", _INSTALL
        )
    return note("driver", f"there is no {DRIVER}", "")


def _permissions() -> Iterator[Finding]:
    """Check that this user may open the devices."""
    for path in sorted(glob(f"{NODES}[0-9]*") + glob(f"{NODES}ctl")):
        if not os.access(path, os.R_OK | os.W_OK):
            fix = f"let this user read and write {path}: a group, or udev's rules"
            yield wrong("permissions", f"{path} may not be opened", fix)


def _library(seen: GpuLook, cards: int) -> Finding:
    if seen.problem:
        fix = "compare `nvidia-smi`; after an upgrade of the driver restart the machine"
        return wrong("nvml", seen.problem, fix)
    if not seen.units and not seen.unnamed:
        told = "it works, and tells of no GPU"
        return wrong("nvml", told, _CONTAINER) if cards else note("nvml", told)
    known = ", ".join(
        f"{one.unit} {one.name} ({one.memory // GIB}G)" for one in seen.units
    )
    driver = f"driver {seen.driver}: " if seen.driver else ""
    return ok("nvml", f"{driver}{known}")


def _managed(managed: str, seen: GpuLook) -> Finding:
    units = chosen_units(managed, seen.units, missing_ok=True)
    text = f"grass manages {', '.join(units) or 'no GPU'}, as it was told to"
    return note("managed", text, "`grass restart --gpus all` has it manage all")


def _mps() -> Finding:
    if shutil.which("nvidia-cuda-mps-control"):
        return ok("mps", "nvidia-cuda-mps-control is installed")
    return note(
        "mps",
        "nvidia-cuda-mps-control is not installed: jobs on one GPU take turns",
        "it comes with NVIDIA's driver, in some distributions as a package of its own",
    )


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
