"""Readings of a GPU, allocations on it, and attempts that run, for tests."""

from collections.abc import Mapping
from typing import Any

from grass.devices.readings import GpuProcess, GpuReading
from grass.model.amount_text import WHOLE
from grass.model.amounts import GIB
from grass.model.resources import Allocation
from tests.worker.lab import FIRST, Lab

MEMORY = 80 * GIB
GUARD = GIB // 2
HALF = {"gpu": {"0": 5000}, "vram": {"0": 40 * 10_000}}


def reading(*processes: GpuProcess, used: int = 0, **facts: Any) -> GpuReading:
    told = {"utilization": 80, "fault": None, **facts}
    return GpuReading(
        unit="0",
        name="g",
        uuid="u",
        memory=MEMORY,
        used=used,
        temperature=None,
        power_w=None,
        power_limit_w=None,
        processes=processes,
        **told,
    )


def listed_reading(
    processes: Mapping[int, int | None], unit: str = "0", **facts: Any
) -> Any:
    listed = tuple(GpuProcess(pid, memory) for pid, memory in processes.items())
    used = sum(memory or 0 for memory in processes.values())
    told: dict[str, Any] = {"memory": MEMORY, "used": used, "fault": None, **facts}
    names = "utilization", "temperature", "power_w", "power_limit_w"
    unknown: dict[str, Any] = dict.fromkeys(names)
    identity: dict[str, Any] = {"unit": unit, "name": "A", "uuid": "u"}
    return GpuReading(processes=listed, **identity, **unknown, **told)


def memory(amount_gib: float, unit: str = "0") -> Allocation:
    return {"gpu": {unit: WHOLE // 2}, "vram": {unit: int(amount_gib * WHOLE)}}


def running(lab: Lab, name: str = FIRST, since: float = 100.0, pid: int = 7) -> None:
    lab.start(name)
    lab.keeper("started", id=name, pid=pid, ticks=9, at=5, since=since)
