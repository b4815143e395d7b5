"""Names and faults of units, whatever is told of GPUs."""

from typing import Any

from msgspec.structs import replace

from grass.devices.gpu_reports import (
    DevicePair,
    DevicePlaces,
    DeviceReport,
    DeviceSnapshot,
    PartReport,
)
from grass.devices.gpu_units import HIDDEN_S, GpuUnits
from grass.devices.readings import GpuProcess, GpuSide
from grass.model.amounts import GIB


def device(index: int, uuid: str, **part: Any) -> DeviceReport:
    """Make the report of a device that works."""
    facts = {"memory": 80 * GIB, "used": 0, **part}
    return DeviceReport(index, uuid, (PartReport(uuid, "A100", **facts),))


def seen(*devices: DeviceReport, **more: Any) -> DeviceSnapshot:
    return DeviceSnapshot(devices, **more)


def faults(units: GpuUnits, now_s: float) -> dict[str, str | None]:
    return {one.unit: one.fault for one in units.readings(now_s)}


def test_a_new_gpu_never_takes_the_name_of_one_that_is_lost() -> None:
    units = GpuUnits(quiet_s=1)
    units.note(seen(device(0, "a"), device(1, "b")), 0)
    units.note(seen(device(0, "b"), device(1, "c")), 1)
    assert {one.unit: one.uuid for one in units.units()} == {
        "0": "a",
        "1": "b",
        "2": "c",
    }
    assert faults(units, 1) == {"0": "it is lost from the bus", "1": None, "2": None}
    assert units.incomplete


def test_a_gpu_that_is_gone_stays_a_unit_and_may_come_again() -> None:
    units = GpuUnits(quiet_s=1)
    units.note(seen(device(0, "a"), device(1, "b")), 0)
    units.note(seen(device(0, "a")), 1_000_000)
    assert len(units.units()) == 2
    assert units.incomplete
    units.note(seen(device(0, "a"), device(1, "b")), 1_000_001)
    assert faults(units, 1_000_001) == {"0": None, "1": None}


def passing(units: GpuUnits) -> dict[str, bool]:
    return {one.unit: one.passing for one in units.readings(1)}


def test_only_silence_passes_by_itself() -> None:
    units = GpuUnits(quiet_s=10)
    units.note(seen(device(0, "a"), device(1, "b"), device(2, "c")), 0)
    assert not any(passing(units).values())
    units.failed("its library does not answer in time")
    assert all(passing(units).values())
    units.note(
        seen(
            DeviceReport(0, "a", fault="it does not answer in time", silent=True),
            DeviceReport(1, "b", fault="it is lost from the bus"),
            replace(device(2, "c"), errors=("Xid 79: it fell off the bus",)),
        ),
        1,
    )
    assert passing(units) == {"0": True, "1": False, "2": False}
    assert faults(units, 1)["2"] == "Xid 79: it fell off the bus"
    units.failed("its library does not answer in time")
    assert passing(units) == {"0": True, "1": False, "2": False}


def test_a_fault_of_a_device_that_does_not_tell_who_it_is_is_that_of_the_missing() -> (
    None
):
    units = GpuUnits(quiet_s=1)
    units.note(seen(device(0, "a"), device(1, "b")), 0)
    silent = DeviceReport(1, fault="it does not answer in time")
    units.note(seen(device(0, "a"), silent), 1)
    assert faults(units, 1) == {"0": None, "1": "it does not answer in time"}


def test_a_device_that_was_never_read_is_no_unit() -> None:
    units = GpuUnits(quiet_s=1)
    units.note(seen(device(0, "a"), DeviceReport(1, fault="it is lost")), 0)
    assert [one.unit for one in units.units()] == ["0"]
    assert units.incomplete


def test_a_library_that_fails_is_the_fault_of_all_until_it_works() -> None:
    units = GpuUnits(quiet_s=1)
    units.note(seen(device(0, "a", used=GIB)), 0)
    units.note(DeviceSnapshot(error="no driver"), 1)
    [reading] = units.readings(1)
    assert (reading.fault, reading.used) == ("no driver", GIB)
    units.note(seen(device(0, "a")), 2)
    assert faults(units, 2) == {"0": None}


def test_memory_without_a_process_means_hidden_pids_only_if_it_stays() -> None:
    units = GpuUnits(quiet_s=1)
    for now_s in (0.0, HIDDEN_S - 0.1):
        units.note(seen(device(0, "a", used=GIB)), now_s)
        assert not units.readings(now_s)[0].pids_hidden
    units.note(seen(device(0, "a", used=GIB)), HIDDEN_S)
    assert units.readings(HIDDEN_S)[0].pids_hidden
    listed = device(0, "a", used=GIB, processes=(GpuProcess(1, GIB),))
    units.note(seen(listed), HIDDEN_S + 1)
    assert not units.readings(HIDDEN_S + 1)[0].pids_hidden


def test_instances_are_as_near_as_their_devices_but_have_no_nvlink() -> None:
    parts = tuple(PartReport(f"m{n}", "1g", GIB, 0, instance=n) for n in range(2))
    places = DevicePlaces(
        (DevicePair("a", "b", "nvlink"), DevicePair("b", "c", "nvlink")),
        {"a": GpuSide(1, (4, 5))},
    )
    units = GpuUnits(quiet_s=1)
    divided = DeviceReport(0, "a", parts)
    units.note(seen(divided, device(1, "b"), device(2, "c"), places=places), 0)
    topology = units.topology()
    assert topology.pairs["0.0"] == {"0.1": "same board", "1": "same cpu", "2": "far"}
    assert topology.nearness("1", "2") == topology.nearness("2", "1") == "nvlink"
    assert topology.sides["0.1"].cores == (4, 5)
    assert topology.nearness("1", "9") == "far"


def indices(units: GpuUnits) -> dict[str, int | None]:
    return {one.uuid: one.index for one in units.units()}


def test_cudas_number_of_a_gpu_is_known_only_while_all_can_be_used() -> None:
    units = GpuUnits(quiet_s=1)
    units.note(seen(device(0, "a"), device(1, "b")), 0)
    assert indices(units) == {"a": 0, "b": 1}
    units.note(seen(device(0, "b")), 1)
    assert indices(units) == {"a": None, "b": None}
    units.note(seen(device(0, "a"), device(1, "b")), 2)
    assert indices(units) == {"a": 0, "b": 1}
    lost = DeviceReport(1, "b", fault="it is lost from the bus")
    units.note(seen(device(0, "a"), lost), 3)
    assert indices(units) == {"a": None, "b": None}


def test_beside_mig_instances_no_number_is_known() -> None:
    part = PartReport("MIG-a", "A100 MIG", memory=10 * GIB, used=0, instance=1)
    units = GpuUnits(quiet_s=1)
    units.note(seen(DeviceReport(0, "a", (part,)), device(1, "b")), 0)
    assert indices(units) == {"MIG-a": None, "b": None}


def test_a_guard_is_kept_free_of_each_gpu_and_of_a_small_one_a_fiftieth() -> None:
    units = GpuUnits(quiet_s=1, guard=GIB // 2)
    units.note(seen(device(0, "a"), device(1, "b", memory=10 * GIB)), 0)
    expected = [80 * GIB - GIB // 2, 10 * GIB - GIB // 5]
    assert [one.memory for one in units.units()] == expected
    readings = units.readings(0)
    assert [one.memory for one in readings] == expected
    assert [one.guard for one in readings] == [GIB // 2, GIB // 5]


def test_of_a_gpu_that_does_not_answer_only_its_memory_is_still_told() -> None:
    units = GpuUnits(60.0)
    busy = GpuProcess(7, GIB, 80)
    facts = {"utilization": 90, "temperature": 60, "power_w": 300.0}
    units.note(seen(device(0, "a", processes=(busy,), used=GIB, **facts)), 0)

    units.note(seen(DeviceReport(0, "a", fault="it does not answer in time")), 1)

    (reading,) = units.readings(1)
    assert (reading.used, reading.processes) == (GIB, (GpuProcess(7, GIB),))
    assert reading.utilization is reading.temperature is reading.power_w is None
