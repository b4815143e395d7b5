"""GPUs as they are: a real child process, and a library that does what tests say."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grass.devices import child_process, gpu_monitor
from grass.devices.child_process import MonitorProcess
from grass.devices.gpu_monitor import GpuMonitor, MonitorLimits
from grass.devices.readings import GpuProcess, GpuReading
from grass.model.amounts import GIB
from tests.support.gpus import USE_GPU, FakeGpus
from tests.support.patience import PATIENCE_S
from tests.support.processes import await_end

QUICK = MonitorLimits(
    open_s=PATIENCE_S,
    read_s=PATIENCE_S,
    first_pause_s=0.02,
    longest_pause_s=0.1,
    quiet_s=0.3,
)
HASTY = msgspec.structs.replace(QUICK, read_s=1.0)
"""For what does not answer."""


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpus:
    """Two devices, which children of this process see."""
    made = FakeGpus(tmp_path / "gpus")
    made.device(0, memory="40G")
    made.device(1, memory="80G", name="Big One", uuid="GPU-big")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    # A process reads LD_LIBRARY_PATH when it starts, so this one has no library.
    monkeypatch.setattr(gpu_monitor, "library_present", lambda: True)
    return made


@asynccontextmanager
async def watching(**how: Any) -> Any:
    monitor = GpuMonitor(**{"patience": QUICK, **how})
    try:
        await monitor.read()
        yield monitor
    finally:
        await monitor.close()


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


async def until(
    monitor: GpuMonitor, holds: Callable[[dict[str, GpuReading]], object]
) -> dict[str, GpuReading]:
    """Read until the readings are right, and return them by unit."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        readings = {one.unit: one for one in await monitor.read()}
        if holds(readings):
            return readings
        assert time.monotonic() < deadline, readings
        await asyncio.sleep(0.01)


@pytest.fixture
def sleeper() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process.pid
    process.kill()
    process.wait()


def test_a_reading_has_all_that_the_library_tells(gpus: FakeGpus, sleeper: int) -> None:
    gpus.device(
        1, reserved="1G", utilization=37, temperature=65, power_mw=300_500, numa=1
    )
    gpus.process(1, sleeper, "8G", utilization=12)

    async def test() -> None:
        async with watching() as monitor:
            [small, big] = await monitor.read()
            assert (small.unit, small.memory, small.used) == ("0", 40 * GIB, 0)
            assert small.processes == ()
            assert big == GpuReading(
                unit="1",
                name="Big One",
                uuid="GPU-big",
                memory=79 * GIB,
                used=8 * GIB,
                utilization=37,
                temperature=65,
                power_w=300.5,
                power_limit_w=700.0,
                processes=(GpuProcess(sleeper, 8 * GIB, 12),),
                fault=None,
            )
            gpus.leave(1, sleeper)
            [_, big] = await monitor.read()
            assert (big.used, big.processes) == (0, ())

    run(test())


def test_a_process_that_announces_itself_is_there_until_it_ends(gpus: FakeGpus) -> None:
    user = subprocess.Popen(
        [sys.executable, "-S", str(USE_GPU), "8G", "30"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "0,GPU-big"},
        stdout=subprocess.PIPE,
    )

    async def test() -> None:
        async with watching() as monitor:
            for one in await monitor.read():
                assert one.used == 8 * GIB
                assert one.processes == (GpuProcess(user.pid, 8 * GIB, 30),)
            user.kill()
            user.wait()
            assert [one.used for one in await monitor.read()] == [0, 0]

    assert user.stdout is not None
    with user.stdout:
        assert user.stdout.readline() == b"holding\n"
        run(test())


def test_each_process_is_there_once_and_impossible_ones_are_not(
    gpus: FakeGpus, sleeper: int
) -> None:
    gpus.process(0, sleeper, "2G")
    gpus.process(0, sleeper, "3G", "graphics")
    gpus.process(0, sleeper, None, "mps")
    gpus.process(0, os.getpid(), None)
    gpus.process(0, 0, "1G", always=1)
    gpus.process(0, 4_194_305, "1G", always=1)
    gpus.process(0, 1, "41G", "graphics", always=1)

    async def test() -> None:
        async with watching() as monitor:
            processes = (await monitor.read())[0].processes
            assert {one.pid: one.memory for one in processes} == {
                sleeper: 3 * GIB,
                os.getpid(): None,
            }

    run(test())


def test_older_drivers_tell_less(gpus: FakeGpus, sleeper: int) -> None:
    gpus.device(0, reserved="1G")
    gpus.process(0, sleeper, "2G", utilization=5)
    gpus.without(
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        "nvmlDeviceGetProcessUtilization",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetFieldValues",
        "nvmlDeviceGetTotalEccErrors",
        "nvmlEventSetCreate",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetP2PStatus",
        "nvmlDeviceGetTopologyCommonAncestor",
    )

    async def test() -> None:
        async with watching() as monitor:
            one = (await monitor.read())[0]
            assert (one.memory, one.used) == (40 * GIB, 3 * GIB)
            assert one.processes == (GpuProcess(sleeper, 2 * GIB),)
            assert (one.temperature, one.power_w, one.fault) == (None, None, None)

    run(test())


def test_a_device_that_hangs_is_the_only_one_with_a_fault(gpus: FakeGpus) -> None:
    async def test() -> None:
        async with watching(patience=HASTY) as monitor:
            gpus.fault(1, "hang")
            await until(monitor, only_the_second_is_late)
            # Only the first look waits for it.
            gpus.device(0, utilization=9)
            assert await quickest_s(monitor) < HASTY.read_s
            await until(monitor, lambda seen: seen["0"].utilization == 9)
            gpus.mend(1)
            await until(monitor, lambda seen: not seen["1"].fault)

    run(test())


def only_the_second_is_late(seen: dict[str, GpuReading]) -> bool:
    faults = [seen[unit].fault for unit in ("0", "1")]
    return faults == [None, "it does not answer in time"]


async def quickest_s(monitor: GpuMonitor) -> float:
    """Return how long the quickest of some looks took."""
    took_s = []
    for _ in range(5):
        began = time.monotonic()
        await monitor.read()
        took_s.append(time.monotonic() - began)
    return min(took_s)


def test_a_slow_device_is_waited_for_within_reason(gpus: FakeGpus) -> None:
    async def test() -> None:
        async with watching() as monitor:
            gpus.fault(1, "slow 200")
            assert all(one.fault is None for one in await monitor.read())
        async with watching(patience=HASTY) as monitor:
            gpus.fault(1, "slow 1500")
            await until(monitor, only_the_second_is_late)
            gpus.mend(1)
            await until(monitor, lambda seen: not seen["1"].fault)

    run(test())


def test_a_library_that_hangs_cannot_hang_the_daemon(gpus: FakeGpus) -> None:
    async def test() -> None:
        async with watching(patience=HASTY) as monitor:
            gpus.hang()
            async with asyncio.timeout(PATIENCE_S):
                readings = await monitor.read()
            assert [one.fault for one in readings] == 2 * ["it does not answer in time"]
            assert [one.unit for one in monitor.units()] == ["0", "1"]
            gpus.work()
            await until(monitor, lambda seen: not any(x.fault for x in seen.values()))

    run(test())


def test_a_library_that_hangs_from_the_start_has_no_gpus_until_it_works(
    gpus: FakeGpus,
) -> None:
    gpus.hang()
    quick = MonitorLimits(open_s=0.5, first_pause_s=0.02, longest_pause_s=0.1)

    async def test() -> None:
        async with watching(patience=quick) as monitor:
            assert await monitor.read() == ()
            gpus.work()
            await until(monitor, len)

    run(test())


def test_a_driver_that_is_unloaded_is_told_and_looked_for(gpus: FakeGpus) -> None:
    async def test() -> None:
        gpus.fail()
        async with watching() as monitor:
            assert await monitor.read() == ()
            gpus.work()
            await until(monitor, len)
            assert (monitor.problem, monitor.driver) == (None, "580.00.stand-in")
            os.kill(monitor.child_pid, signal.SIGKILL)
            gpus.fail()
            seen = await until(
                monitor, lambda seen: "driver" in (seen["0"].fault or "")
            )
            assert seen["1"].fault == "NVIDIA's driver is not loaded"
            gpus.work()
            await until(monitor, lambda seen: not seen["0"].fault)

    run(test())


def test_a_child_that_dies_or_stops_is_replaced(gpus: FakeGpus) -> None:
    async def test() -> None:
        async with watching(patience=HASTY) as monitor:
            for number in (signal.SIGKILL, signal.SIGSTOP):
                before = monitor.child_pid
                os.kill(before, number)
                gone = (None, before)
                await until(monitor, lambda _: monitor.child_pid not in gone)  # noqa: B023
                await until(monitor, lambda seen: not seen["0"].fault)

    run(test())


def test_children_that_cannot_even_be_killed_do_not_grow_in_number(
    gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus.hang()
    started = []
    start = MonitorProcess.start

    async def counted(*words: Any) -> MonitorProcess:
        started.append(words)
        return await start(*words)

    quick = MonitorLimits(open_s=0.1, first_pause_s=0.001, longest_pause_s=0.001)

    async def test() -> None:
        async with watching(patience=quick) as monitor:
            for _ in range(10):
                assert await monitor.read() == ()
            assert len(started) == gpu_monitor.MOST_STUCK
            assert monitor.problem == "its library does not answer in time"

    with monkeypatch.context() as patched:
        patched.setattr(MonitorProcess, "start", counted)
        still_there = property(lambda child: bool(child._process.wait()))
        patched.setattr(MonitorProcess, "alive", still_there)
        patched.setattr(child_process, "_LEAVE_S", 0.01)
        run(test())


def test_a_lost_gpu_has_a_fault_and_comes_back_by_itself(gpus: FakeGpus) -> None:
    async def test() -> None:
        async with watching() as monitor:
            gpus.fault(0, "lost")
            seen = await until(monitor, lambda seen: seen["0"].fault)
            assert seen["0"].fault == "it is lost from the bus"
            assert seen["1"].fault is None
            gpus.mend(0)
            await until(monitor, lambda seen: not seen["0"].fault)

    run(test())


def test_a_gpu_keeps_its_name_when_one_before_it_is_gone(gpus: FakeGpus) -> None:
    async def test() -> None:
        async with watching() as monitor:
            gpus.remove(0)
            seen = await until(monitor, lambda seen: seen["0"].fault)
            seen = await until(monitor, lambda seen: not seen["1"].fault)
            assert (seen["1"].uuid, seen["0"].fault) == (
                "GPU-big",
                "it is lost from the bus",
            )
            gpus.device(0)
            await until(monitor, lambda seen: not seen["0"].fault)

    run(test())


def test_units_that_come_are_told_and_those_that_go_stay(gpus: FakeGpus) -> None:
    async def test() -> None:
        async with watching() as monitor:
            told: list[list[str]] = []
            monitor.on_units = lambda: told.append(
                [one.unit for one in monitor.units()]
            )
            gpus.device(2)
            await until(monitor, lambda seen: len(seen) == 3)
            gpus.remove(1)
            await until(monitor, lambda seen: seen["1"].fault)
            # That their numbers or places are told anew is news as well.
            names = [units for units, _ in groupby(told)]
            assert names[-1] == ["0", "1", "2"]

    run(test())


def test_instances_of_a_divided_gpu_are_units(gpus: FakeGpus, sleeper: int) -> None:
    async def test() -> None:
        async with watching() as monitor:
            gpus.mig(1, 0, memory="10G")
            gpus.mig(1, 2, memory="20G", uuid="MIG-two")
            gpus.process("1.2", sleeper, "3G")
            seen = await until(monitor, lambda seen: "1.2" in seen)
            assert list(seen) == ["0", "1.0", "1.2"]
            assert (seen["1.2"].uuid, seen["1.2"].used) == ("MIG-two", 3 * GIB)
            assert seen["1.2"].utilization is None
            assert seen["1.0"].processes == ()
            assert monitor.units()[2].device == "GPU-big"
            assert monitor.topology().nearness("1.0", "1.2") == "same board"
            gpus.remove("1.0")
            seen = await until(monitor, lambda seen: "1.0" not in seen)
            gpus.device(1, mig=0)
            assert list(await until(monitor, lambda seen: "1" in seen)) == ["0", "1"]

    run(test())


def test_an_error_of_the_device_is_a_fault_and_one_of_a_program_is_not(
    gpus: FakeGpus,
) -> None:
    async def test() -> None:
        async with watching() as monitor:
            gpus.fault(1, "xid 31")
            assert all(one.fault is None for one in await monitor.read())
            gpus.fault(1, "xid 79")
            [first, second] = await monitor.read()
            assert (first.fault, second.fault) == (None, "Xid 79: it fell off the bus")
            await until(monitor, lambda seen: not seen["1"].fault)
            gpus.fault(0, "ecc")
            fault = (await monitor.read())[0].fault
            assert fault == "a memory error that could not be corrected"
            await until(monitor, lambda seen: not seen["0"].fault)
            gpus.device(0, recovery=1)
            assert "needs a reset" in ((await monitor.read())[0].fault or "")
            gpus.device(0, recovery=0)
            assert (await monitor.read())[0].fault is None

    run(test())


def test_pids_of_another_namespace_are_said_to_be_hidden(
    gpus: FakeGpus, sleeper: int
) -> None:
    gpus.process(0, 4_194_303, "8G", always=1)

    async def test() -> None:
        async with watching() as monitor:
            [first, second] = await monitor.read()
            assert (first.pids_hidden, second.pids_hidden) == (True, False)
            gpus.process(0, sleeper, "1G")
            assert not (await monitor.read())[0].pids_hidden

    run(test())


def test_where_gpus_are_is_told(gpus: FakeGpus) -> None:
    gpus.device(0, cores=0b1100, numa=1)
    gpus.device(2)
    gpus.pair(0, 1, "nvlink")
    gpus.pair(1, 2, "same switch")

    async def test() -> None:
        async with watching() as monitor:
            await until(monitor, lambda _: monitor.topology().sides["0"].cores)
            topology = monitor.topology()
            assert topology.sides["0"].cores == (2, 3)
            assert topology.sides["0"].numa_node == 1
            assert topology.pairs["1"] == {"0": "nvlink", "2": "same switch"}
            assert topology.nearness("2", "0") == "far"

    run(test())


def test_a_restricted_monitor_tells_only_of_some(gpus: FakeGpus) -> None:
    gpus.device(2)

    async def test() -> None:
        async with watching(visible="GPU-b,2") as monitor:
            assert [one.unit for one in await monitor.read()] == ["1", "2"]
            assert [one.unit for one in monitor.all_units()] == ["0", "1", "2"]
            gpus.remove(2)
            seen = await until(monitor, lambda seen: seen["2"].fault)
            assert list(seen) == ["1", "2"]

    run(test())


def test_callers_at_the_same_time_share_a_look(
    gpus: FakeGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, asked = MonitorProcess.ask, []

    async def counted(child: MonitorProcess, limit_s: float) -> bytes:
        asked.append(child)
        return await ask(child, limit_s)

    async def test() -> None:
        async with watching() as monitor:
            monkeypatch.setattr(MonitorProcess, "ask", counted)
            both = await asyncio.gather(*(monitor.read() for _ in range(5)))
            assert len(asked) == 1
            assert all(one == both[0] for one in both)

    run(test())


def test_without_a_driver_there_is_no_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    monkeypatch.setattr(gpu_monitor, "FILE", str(tmp_path / "libnvidia-ml.so.1"))

    async def test() -> None:
        async with watching() as monitor:
            assert await monitor.read() == ()
            assert monitor.child_pid is None
            assert monitor.units() == ()

    run(test())


@pytest.mark.parametrize("hangs", [False, True])
def test_the_child_leaves_with_the_daemon(gpus: FakeGpus, hangs: bool) -> None:
    script = """
import asyncio, sys, signal
from grass.devices.gpu_monitor import GpuMonitor
async def main():
    monitor = GpuMonitor()
    await monitor.read()
    print(monitor.child_pid, flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    if hangs:
        gpus.hang()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await_end(child)
