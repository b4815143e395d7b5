"""Looks at this machine: what its GPUs tell, and what the processes of attempts use.

The core says when and at what (`UsageTable`). Files of /proc and of histories are read
and written in a thread of its own, as a process that is stuck can make both hang.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Protocol

from grass.devices.readings import GpuReading
from grass.event_log import EventLog
from grass.keeper.process_table import read_stat
from grass.keeper.protocol import HelloEntry, StateEntry
from grass.model.usage.attempt_usage import AttemptUsage, ResourceUse, UsagePoint
from grass.worker.core.usage.device_history import DeviceHistory
from grass.worker.core.usage.measured import YOUNG_S
from grass.worker.core.usage.samples import ProcessUse, RunningAttempt, Sample, without
from grass.worker.core.usage.usage_table import FIRST_LOOK_S, UsageTable
from grass.worker.shell.usage.process_names import process_name
from grass.worker.shell.usage.process_use import AttemptProcesses
from grass.worker.shell.usage.usage_files import UsageFiles, recorded_peak

log = EventLog(__name__)

WRITE_S = 5.0
"""How often histories are written, once their attempts are not young any more."""
MOST_RECOVERED = 64
"""For how many unreported exits the history is read before they are reported."""
AFTER_DEFECT_S = 10.0


class GpuReader(Protocol):
    """What is used of a `GpuMonitor`."""

    async def read(self) -> tuple[GpuReading, ...]:
        """Return every unit as it is now, in bounded time."""


class Sampler:
    """Measures what attempts use while they run, and GPUs also between them."""

    def __init__(
        self,
        table: UsageTable,
        gpus: GpuReader | None,
        folder: str,
        on_sample: Callable[[Sample], None] = lambda _: None,
    ) -> None:
        """`on_sample` is called after every look; `folder` is that of output."""
        self._table = table
        self._gpus = gpus
        self._on_sample = on_sample
        self._processes: AttemptProcesses | None = None
        self._files = UsageFiles()
        self.devices = DeviceHistory(folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sampler")
        self._looking: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._has_gpus = gpus is not None
        self._readings: tuple[GpuReading, ...] = ()
        self._written_s = float("-inf")
        self._starts_wait = False
        self._is_asked = False
        """Whether a client watches, which wants to see the youngest attempts too."""
        self._names: dict[int, str] = {}
        self._cost_s = 0.0
        """What the last look at processes cost."""

    def keeper_connected(self, hello: HelloEntry) -> None:
        """Look for processes below this keeper, and recover what was measured.

        Call it before the core is told: exits that a daemon before this one has not
        reported are reported then, with the most that those attempts used.
        """
        known = self._processes
        if hello.pid is not None and (known is None or known.keeper_pid != hello.pid):
            if known is not None:
                self._thread.submit(known.close)
            self._processes = AttemptProcesses(hello.pid)
        ended = [one for one in hello.attempts if one.state == "exited"]
        for one in ended[:MOST_RECOVERED]:
            self._recovered(one.id, self._peak_of(one))
        loop = asyncio.get_running_loop()
        for one in hello.attempts:
            if one.state == "running" and self._table.of(one.id) is None:
                reading = loop.run_in_executor(self._thread, self._peak_of, one)
                reading.add_done_callback(partial(self._recovered_later, one.id))
        self.wake()

    def _peak_of(self, state: StateEntry) -> ResourceUse | None:
        path = self._table.file_in(state.meta)
        return None if path is None else recorded_peak(path)

    def _recovered(self, name: str, peak: ResourceUse | None) -> None:
        if peak is not None:
            self._table.recover(name, peak)

    def _recovered_later(
        self, name: str, reading: "asyncio.Future[ResourceUse | None]"
    ) -> None:
        runs = name in self._table.running(0.0)
        if runs and not reading.cancelled() and reading.exception() is None:
            self._recovered(name, reading.result())

    def wake(self) -> None:
        """Look again when that is due: an attempt has started or ended."""
        self._wake.set()

    async def run(self) -> None:
        """Look, until cancelled; then write what was not written yet."""
        try:
            while True:
                try:
                    await self._wait()
                    await self.look()
                    await self._write()
                except Exception as error:  # noqa: BLE001 -- jobs are not concerned
                    log.defect(error)
                    await asyncio.sleep(AFTER_DEFECT_S)
        finally:
            if self._looking is not None:
                self._looking.cancel()
            points = self._table.take_points() | self.devices.take(every=True)
            self._thread.submit(self._files.append, points)
            self._thread.shutdown(wait=False)

    def look_soon(self) -> None:
        """Look at GPUs now: starts wait for it."""
        self._starts_wait = True
        self._begin_look()

    async def sample_now(self) -> Sample:
        """Look at GPUs now, as a client watches, and return all that is known."""
        self._table.watch(boot_s())
        self._is_asked = True
        self.look_soon()
        await self.look()
        return self._table.sample

    def usage_of(self, attempts: list[str]) -> dict[str, AttemptUsage]:
        """Return what attempts use now, of those that were measured."""
        self._table.watch(boot_s())
        found = {name: self._table.of(name) for name in attempts}
        return {
            name: AttemptUsage(one.now, one.peak)
            for name, one in found.items()
            if one is not None
        }

    async def look(self) -> None:
        """Look once; several callers share one look."""
        await asyncio.shield(self._begin_look())

    def _begin_look(self) -> "asyncio.Task[None]":
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
            self._looking.add_done_callback(self._looked)
        return self._looking

    def _looked(self, task: "asyncio.Task[None]") -> None:
        self._looking = None
        # An error is logged where it is waited for.
        if not task.cancelled() and task.exception() is None and self._starts_wait:
            # They came after this look had begun.
            self._begin_look()

    async def _look(self) -> None:
        now_s, starts_wait = boot_s(), self._starts_wait
        self._starts_wait = False
        asked, self._is_asked = self._is_asked, False
        due = self._table.running(now_s) if asked else self._table.due(now_s)
        reads = starts_wait or self._table.needs_gpus(due, now_s)
        if self._gpus is not None and reads:
            self._readings = await self._gpus.read()
            self._has_gpus = bool(self._readings)
            self.devices.note(self._readings, time.time())
        uses, names = await self._used(due)
        if due:
            self._table.took(len(due), self._cost_s)
        self._table.oom_kills(oom_kills(), boot_s())
        self._readings = without(self._readings, self._ended(uses))
        sample = self._table.sampled(boot_s(), self._readings, uses, names)
        if reads:
            self._on_sample(sample)

    async def _used(
        self, due: dict[str, RunningAttempt]
    ) -> tuple[dict[str, ProcessUse], dict[int, str]]:
        """Return what attempts use, and the names of processes that are of none."""
        unknown = self._on_gpus() - self._table.pids_without(due)
        if not due and not unknown:
            self._names = {}
            return {}, {}
        # One may have started or ended while the GPUs were read.
        known = self._table.known(boot_s())
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._thread, self._read, known, due.keys() & known.keys(), unknown
        )

    def _read(
        self, attempts: dict[str, RunningAttempt], due: set[str], unknown: set[int]
    ) -> tuple[dict[str, ProcessUse], dict[int, str]]:
        """Look at attempts, and at processes that are of none as far as is known."""
        uses = {}
        if self._processes is not None:
            began_s = time.thread_time()
            uses = self._processes.read(attempts, due, unknown)
            self._cost_s = time.thread_time() - began_s
        unknown -= frozenset[int]().union(*(one.pids for one in uses.values()))
        known, self._names = self._names, {}
        for pid in unknown:
            self._names[pid] = known.get(pid) or process_name(pid)
        return uses, self._names

    def _ended(self, uses: dict[str, ProcessUse]) -> set[int]:
        """Return processes that have ended since the GPUs were read.

        A GPU with a fault may have been read long ago.
        """
        faulty = (gpu for gpu in self._readings if gpu.fault and not gpu.pids_hidden)
        doubtful = {one.pid for gpu in faulty for one in gpu.processes}
        doubtful |= self._table.left(uses) & self._on_gpus()
        return {pid for pid in doubtful if has_ended(pid)}

    def _on_gpus(self) -> set[int]:
        return {one.pid for gpu in self._readings for one in gpu.processes}

    async def _wait(self) -> None:
        """Wait until a look is due."""
        while True:
            self._wake.clear()
            pause_s = self._table.pause_s(boot_s(), has_gpus=self._has_gpus)
            if pause_s == 0.0:
                return
            if pause_s is not None and pause_s <= FIRST_LOOK_S:
                # Whatever starts meanwhile is looked at soon enough.
                await asyncio.sleep(pause_s)
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause_s)

    async def _write(self) -> None:
        now_s = boot_s()
        age_s = self._table.youngest_s(now_s)
        if age_s is not None:
            due_s = 1.0 if age_s < YOUNG_S else WRITE_S
            if now_s - self._written_s < due_s:
                return
        self._written_s = now_s
        points = self._table.take_points() | self.devices.take()
        running = self._table.running(now_s)
        keep = {path for path in map(self._table.file_of, running) if path}
        keep |= set(self.devices.files().values())
        if points:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._thread, self._append, points, keep)

    def _append(self, points: dict[str, list[UsagePoint]], keep: set[str]) -> None:
        self._files.append(points)
        self._files.forget(keep)


def boot_s() -> float:
    """Return seconds since boot, the time the machine slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def has_ended(pid: int) -> bool:
    """Tell whether a process is gone, or only its exit code is left of it."""
    try:
        stat = read_stat(pid)
    except OSError:
        return True
    return stat is None or stat.dead


def oom_kills() -> int | None:
    """Return how many processes the kernel has killed for want of memory."""
    try:
        with open("/proc/vmstat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    _, found, rest = text.partition(b"\noom_kill ")
    return int(rest.split(None, 1)[0]) if found else None
