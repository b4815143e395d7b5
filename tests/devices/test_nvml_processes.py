"""How often the driver is asked about processes."""

from collections.abc import Callable
from typing import Any

from grass.devices.nvml_processes import SELDOM_S, DeviceProcesses
from grass.devices.readings import GpuProcess

COMPUTE = "nvmlDeviceGetComputeRunningProcesses_v3"
GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses_v3"
MPS = "nvmlDeviceGetMPSComputeRunningProcesses_v3"
ALL = [COMPUTE, GRAPHICS, MPS, "busy"]


class Driver:
    """Has lists, and notes what is asked."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.asked: list[str] = []
        self.rows: dict[str, list[tuple[int, ...]]] = {COMPUTE: [(7, 500, 0, 0)]}
        self.processes = DeviceProcesses(self.answer, lambda: self.now_s)

    def answer(self, name: str, question: Callable[[], Any]) -> Any:
        self.asked.append(name)
        return self.rows.get(name, [])

    def look(self, used: int = 500, after_s: float = 1.0) -> tuple[GpuProcess, ...]:
        self.now_s += after_s
        self.asked = []
        return self.processes.read(None, 1000, used)


def test_what_takes_long_is_asked_seldom_while_nothing_changes() -> None:
    driver = Driver()
    driver.rows |= {"busy": [(7, 1, 30, 0, 0, 0)], GRAPHICS: [(8, 10, 0, 0)]}
    expected = GpuProcess(7, 500, 30), GpuProcess(8, 10)
    assert driver.look() == expected
    assert driver.asked == ALL
    driver.rows["busy"] = [(7, 2, 60, 0, 0, 0)]

    assert driver.look() == expected
    assert driver.asked == [COMPUTE]

    assert driver.look(after_s=SELDOM_S)[0] == GpuProcess(7, 500, 60)
    assert driver.asked == ALL


def test_everything_is_asked_when_memory_or_a_process_has_changed() -> None:
    driver = Driver()
    driver.look()
    driver.rows[GRAPHICS] = [(8, 10, 0, 0)]
    assert driver.look(used=510) == (GpuProcess(7, 500), GpuProcess(8, 10))
    driver.rows[COMPUTE] = [(9, 500, 0, 0)]
    assert driver.look(used=510) == (GpuProcess(8, 10), GpuProcess(9, 500))
    assert driver.asked == ALL
