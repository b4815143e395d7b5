"""When a GPU that had an error may be used again."""

from grass.devices.gpu_health import GpuHealth
from grass.devices.gpu_reports import DeviceReport


def test_an_error_keeps_a_gpu_out_of_use_until_it_was_quiet() -> None:
    health = GpuHealth(quiet_s=100)
    health.note(DeviceReport(0, "a", errors=("Xid 79: it fell off the bus",)), 10)
    assert health.fault(109) == "Xid 79: it fell off the bus"
    health.note(DeviceReport(0, "a"), 110)
    assert health.fault(110) is None


def test_another_error_keeps_it_longer() -> None:
    health = GpuHealth(quiet_s=100)
    health.note(DeviceReport(0, "a", errors=("one",)), 0)
    health.note(DeviceReport(0, "a", errors=("two",)), 90)
    assert health.fault(150) == "two"


def test_only_new_memory_errors_count() -> None:
    health = GpuHealth(quiet_s=100)
    health.note(DeviceReport(0, "a", uncorrected=7), 0)
    assert health.fault(0) is None
    health.note(DeviceReport(0, "a", uncorrected=8), 1)
    assert health.fault(1) == "a memory error that could not be corrected"
    health.note(DeviceReport(0, "a", uncorrected=0), 150)
    assert health.fault(150) is None


def test_what_the_driver_asks_for_keeps_it_out_of_use_until_done() -> None:
    health = GpuHealth(quiet_s=100)
    health.note(DeviceReport(0, "a", trouble="needs a reset"), 0)
    assert health.fault(10_000) == "needs a reset"
    health.note(DeviceReport(0, "a"), 10_001)
    assert health.fault(10_001) is None
