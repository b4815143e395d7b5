"""Tells how the GPUs of this machine are used when somebody looks.

A process on a GPU belongs to the attempt whose marker is in its environment; one
without a marker is a stranger. Names of processes and users come from /proc, which is
read in a thread: a process that hangs in the kernel can hang its readers.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from grass.config import MARKER
from grass.devices.readings import GpuProcess, GpuReading
from grass.event_log import EventLog
from grass.link.messages import Devices, ReadDevices
from grass.model.gpu_use import GpuUse, GpuUser
from grass.worker.shell.output_files import Begin
from grass.worker.shell.process_names import program_and_owner

log = EventLog(__name__)

LOOK_S = 2.0
"""How long names of processes are looked for."""
_MARK = f"{MARKER}=".encode()


class GpuSource(Protocol):
    """What reads the GPUs of this machine."""

    def read(self) -> Awaitable[tuple[GpuReading, ...]]:
        """Return every GPU as it is now, in bounded time."""


class DeviceReader:
    """Answers the broker's requests about devices."""

    def __init__(
        self, gpus: GpuSource | None, answer: Callable[[Devices], None], begin: Begin
    ) -> None:
        """Without a source there are no GPUs."""
        self._gpus = gpus
        self._answer = answer
        self._begin = begin

    def read(self, request: ReadDevices) -> None:
        """Answer as soon as the devices were read."""
        self._begin(self._read(request))

    async def _read(self, request: ReadDevices) -> None:
        readings = () if self._gpus is None else await self._gpus.read()
        named = await _named({one.pid for gpu in readings for one in gpu.processes})
        self._answer(Devices(request.number, [use_of(one, named) for one in readings]))


def use_of(reading: GpuReading, named: dict[int, GpuUser]) -> GpuUse:
    """Return a GPU with those who are on it."""
    users = [_user(process, named) for process in reading.processes]
    attempts = dict[str, int]()
    for user in users:
        if user.attempt:
            held = attempts.get(user.attempt, 0)
            attempts[user.attempt] = held + (user.memory or 0)
    return GpuUse(
        unit=reading.unit,
        name=reading.name,
        uuid=reading.uuid,
        memory=max(0, reading.memory - reading.reserved),
        used=reading.used,
        utilization=reading.utilization,
        temperature=reading.temperature,
        power_w=reading.power_w,
        power_limit_w=reading.power_limit_w,
        fault=reading.fault,
        pids_hidden=reading.pids_hidden,
        users=users,
        attempts=attempts,
    )


def _user(process: GpuProcess, named: dict[int, GpuUser]) -> GpuUser:
    known = named.get(process.pid, GpuUser(process.pid))
    return GpuUser(
        process.pid,
        process.memory,
        process.utilization,
        known.user,
        known.command,
        known.attempt,
    )


async def _named(pids: Iterable[int]) -> dict[int, GpuUser]:
    """Look up processes; nothing is known of them if that takes too long."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(LOOK_S):
            return await loop.run_in_executor(None, _looked_up, list(pids))
    except TimeoutError:
        log.warning("gpus.unnamed", seconds=LOOK_S)
        return {}


def _looked_up(pids: list[int]) -> dict[int, GpuUser]:
    return {pid: _process(pid) for pid in pids}


def _process(pid: int) -> GpuUser:
    program, owner = program_and_owner(pid) or ("", "")
    return GpuUser(pid, None, None, owner, program, _attempt(pid))


def _attempt(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return ""
    marks = [one for one in variables if one.startswith(_MARK)]
    return os.fsdecode(marks[0][len(_MARK) :]) if marks else ""
