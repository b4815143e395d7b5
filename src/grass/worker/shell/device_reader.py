"""Tells how the GPUs of this machine are used when a client asks.

Which process belongs to which attempt, and what each attempt uses, is what the sampler
has found; any other process is a stranger. What processes run and whose they are is
read from /proc in a thread: a process that hangs in the kernel can hang its readers.
"""

import asyncio
from collections.abc import Awaitable, Callable

from grass.devices.readings import GpuProcess, GpuReading
from grass.event_log import EventLog
from grass.link.messages import Devices, ReadDevices
from grass.model.usage.gpu_use import GpuUse, GpuUser
from grass.worker.core.usage.samples import Sample
from grass.worker.shell.output_ends import CreateTask
from grass.worker.shell.usage.process_names import program_and_owner

log = EventLog(__name__)

LOOK_S = 2.0
"""How long names of processes are looked for."""

ProcessNames = dict[int, tuple[str, str]]
"""What processes run and whose they are, by pid."""


class DeviceReader:
    """Answers the broker's requests about devices."""

    def __init__(
        self,
        sample: Callable[[], Awaitable[Sample]],
        answer: Callable[[Devices], None],
        begin: CreateTask,
    ) -> None:
        """`sample` looks at the machine now, in bounded time."""
        self._sample = sample
        self._answer = answer
        self._begin = begin

    def read(self, request: ReadDevices) -> None:
        """Answer as soon as the devices were read."""
        self._begin(self._read(request))

    async def _read(self, request: ReadDevices) -> None:
        try:
            uses = await self._uses()
        except Exception as error:  # noqa: BLE001 -- the worker goes on without
            log.defect(error)
        else:
            self._answer(Devices(request.number, uses))

    async def _uses(self) -> list[GpuUse]:
        sample = await self._sample()
        names = await _named({one.pid for gpu in sample.gpus for one in gpu.processes})
        return [use_of(one, sample, names) for one in sample.gpus]


def use_of(reading: GpuReading, sample: Sample, names: ProcessNames) -> GpuUse:
    """Return a GPU with those who are on it."""
    attempts = {
        name: held
        for name, use in sample.attempts.items()
        if (held := use.gpu_memory.get(reading.unit, 0))
    }
    owners = {pid: name for name, use in sample.attempts.items() for pid in use.pids}
    return GpuUse(
        unit=reading.unit,
        name=reading.name,
        uuid=reading.uuid,
        memory=reading.memory,
        used=reading.used,
        utilization=reading.utilization,
        temperature=reading.temperature,
        power_w=reading.power_w,
        power_limit_w=reading.power_limit_w,
        fault=reading.fault,
        pids_hidden=reading.pids_hidden,
        users=[_user(process, owners, names) for process in reading.processes],
        attempts=attempts,
    )


def _user(process: GpuProcess, owners: dict[int, str], names: ProcessNames) -> GpuUser:
    program, owner = names.get(process.pid, ("", ""))
    return GpuUser(
        process.pid,
        process.memory,
        process.utilization,
        owner,
        program,
        owners.get(process.pid, ""),
    )


async def _named(pids: set[int]) -> ProcessNames:
    """Look up processes; nothing is known of them if that takes too long."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(LOOK_S):
            return await loop.run_in_executor(None, _looked_up, pids)
    except TimeoutError:
        log.warning("gpus.unnamed", seconds=LOOK_S)
        return {}


def _looked_up(pids: set[int]) -> ProcessNames:
    found = {pid: program_and_owner(pid) for pid in pids}
    return {pid: named for pid, named in found.items() if named is not None}
