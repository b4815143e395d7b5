"""The shell around the worker's core: it connects the keeper, the broker and files.

`run` lives as long as the daemon. The keeper outlives it: closing the connection leaves
every job running. When the keeper is lost another one is started, which adopts the
processes of the first.
"""

import asyncio
import time
from itertools import islice
from typing import Any

from grass.devices.gpu_monitor import GpuMonitor
from grass.devices.probe import allotted_units, found_units
from grass.event_log import EventLog
from grass.keeper.codec import name_of
from grass.keeper.crash_points import crash_point
from grass.keeper.protocol import Entry, ExitEntry, HelloEntry
from grass.keeper.start_errors import cause
from grass.link.channel import Link
from grass.link.messages import (
    BlobData,
    CloseOutput,
    ReadDevices,
    ReadOutput,
    ReadUsage,
    RemoveOutput,
    Resync,
    Start,
    TaskBytes,
    TaskBytesTaken,
    ToBroker,
    ToWorker,
    UsageData,
    Welcome,
    WriteInput,
)
from grass.model.jobs.task_call import TaskCall
from grass.model.resources import GPU_KINDS
from grass.model.worker import gpu_memory
from grass.worker.core.causes import may_be_killed
from grass.worker.core.effects import WorkerEffects
from grass.worker.core.keeper_entries import with_kernel_status
from grass.worker.core.mps_servers import MpsServers
from grass.worker.core.usage.samples import Sample
from grass.worker.core.worker_core import WorkerCore
from grass.worker.shell.blob_files import BlobFiles
from grass.worker.shell.device_reader import DeviceReader
from grass.worker.shell.exit_watch import ExitWatch
from grass.worker.shell.job_inputs import JobInputs, remove_socket
from grass.worker.shell.job_ports import JobPorts
from grass.worker.shell.keeper_link import KeeperLink, open_keeper
from grass.worker.shell.mps_control import is_ready
from grass.worker.shell.output_ends import CreateTask, OutputEnds, ends_of
from grass.worker.shell.output_files import OutputFiles
from grass.worker.shell.task_channels import TaskChannels
from grass.worker.shell.usage.sampler import MOST_RECOVERED, Sampler, boot_s, oom_kills

log = EventLog(__name__)

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
QUICK_LOSS_S = 1.0
"""A keeper that is lost sooner than this is connected again only after a pause."""
TOLD_AFTER_S = 0.5
"""After a pause this long the broker is told that there is no keeper."""


class WorkerAgent:
    """The agent of this machine."""

    def __init__(
        self,
        core: WorkerCore,
        link: Link[ToBroker, ToWorker],
        keeper_folder: str,
        output_folder: str,
        log_format: str = "text",
        monitor: GpuMonitor | None = None,
    ) -> None:
        """`run` makes it live; `log_format` is for a keeper that it starts."""
        self._blobs: BlobFiles | None = None
        self._core = core
        self._link = link
        self._keeper_folder = keeper_folder
        self._output_folder = output_folder
        self._log_format = log_format
        self._gpus = monitor
        self._mps = MpsServers(core.around.mps)
        self._ports = JobPorts(core.is_running)
        self._watch = ExitWatch()
        self._keeper: KeeperLink | None = None
        self._inputs: JobInputs | None = None
        self._channels: TaskChannels | None = None
        self._sampler: Sampler | None = None
        self._ends: OutputEnds | None = None
        self._create_task: CreateTask | None = None
        self._lost = asyncio.Event()
        self.welcomed = asyncio.Event()
        """Set once a broker has accepted this worker."""

    @property
    def running(self) -> int:
        """Count the attempts that run here."""
        return self._core.running

    async def run(self) -> None:
        """Work until the link closes or the task is cancelled."""
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._keep_keeper())
            files = OutputFiles(self._output_folder, self._link.send, group.create_task)
            parts = self._core.is_running, self._link.send, group.create_task
            self._inputs = JobInputs(self._keeper_folder, *parts)
            self._channels = TaskChannels(self._keeper_folder, *parts)
            if self._core.around.blob_folder:
                place = self._core.around.blob_folder, self._core.around.most_blob_bytes
                self._blobs = BlobFiles(place, *parts, self._fetched)
            self._sampler = Sampler(
                self._core.usage, self._gpus, self._output_folder, self._sampled
            )
            devices = DeviceReader(
                self._sampler.sample_now, self._link.send, group.create_task
            )
            self._ends = OutputEnds(self._output_ended, group.create_task)
            self._create_task = group.create_task
            sampling = group.create_task(self._sampler.run())
            ended = asyncio.Event()
            self._link.listen(
                lambda batch: self._from_broker(batch, files, devices), ended.set
            )
            if self._gpus is not None:
                self._gpus.on_units = self._units_found
            try:
                await ended.wait()
            finally:
                keeping.cancel()
                sampling.cancel()
                files.close()
                self._channels.close_all()
                self._ends.close()
                await self._close()

    async def _close(self) -> None:
        if self._blobs is not None:
            self._blobs.close()
        self._ports.close()
        self._watch.close()
        if self._keeper is not None:
            self._keeper.close()
        if self._gpus is not None:
            await self._gpus.close()

    async def _keep_keeper(self) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            self._lost.clear()
            # Set before it is connected: its first entries may need an answer.
            self._keeper = KeeperLink(self._from_keeper, self._keeper_lost)
            try:
                await open_keeper(self._keeper_folder, self._keeper, self._log_format)
            except (OSError, RuntimeError) as error:
                # The latter where no thread can be started.
                if pause_s < LONGEST_PAUSE_S:
                    log.error("keeper.unreachable", error=error)  # noqa: TRY400
                if pause_s > TOLD_AFTER_S:
                    self._core.keeper_fails(cause(error))
                    self._flush()
            else:
                connected_at = time.monotonic()
                await self._lost.wait()
                log.warning("keeper.lost")
                if time.monotonic() - connected_at >= QUICK_LOSS_S:
                    pause_s = FIRST_PAUSE_S
                    continue
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _keeper_lost(self) -> None:
        self._keeper = None
        self._watch.open_all()
        self._core.keeper_lost()
        self._lost.set()

    def _from_broker(
        self, messages: list[ToWorker], files: OutputFiles, devices: DeviceReader
    ) -> None:
        self._set_time()
        if self._blobs is not None:
            self._blobs.look_again()
        for message in messages:
            if not self._passed_on(message, files, devices):
                self._decide(message)
        self._flush()

    def _passed_on(
        self, message: ToWorker, files: OutputFiles, devices: DeviceReader
    ) -> bool:
        """Answer a request that the core does not decide about."""
        assert self._inputs is not None
        assert self._channels is not None
        match message:
            case ReadOutput():
                files.read(message)
            case CloseOutput():
                files.close_stream(message)
            case WriteInput():
                self._inputs.write(message)
            case BlobData():
                if self._blobs is not None:
                    self._blobs.received(message)
            case TaskBytes() | TaskBytesTaken():
                self._channels.received(message)
            case ReadUsage():
                self._tell_usage(message)
            case RemoveOutput():
                files.remove(message)
            case ReadDevices():
                devices.read(message)
            case _:
                return False
        return True

    def _decide(self, message: ToWorker) -> None:
        if isinstance(message, Resync) and self._channels is not None:
            self._channels.close_all()
        if isinstance(message, Start) and message.task is not None:
            self._fetch_blobs(message, message.task)
        if isinstance(message, Start) and _wants_port(message):
            self._offer(port=self._ports.take(message.attempt))
        self._core.from_broker(message)
        if isinstance(message, Welcome):
            self.welcomed.set()
            if self._blobs is not None:
                self._blobs.connected()

    def _fetch_blobs(self, start: Start, task: TaskCall) -> None:
        """Let a start wait until the blobs that it names are here."""
        if self._blobs is None or start.attempt in self._core.fetching:
            return
        names = [one for one in (task.function, start.arguments_blob) if one]
        if not self._blobs.need(start.attempt, names):
            self._core.fetching.add(start.attempt)

    def _fetched(self, attempt: str, problem: str) -> None:
        self._set_time()
        self._core.fetched(attempt, problem)
        self._flush()

    def _sampled(self, sample: Sample) -> None:
        self._set_time()
        self._core.sampled(sample)
        self._flush()

    def _tell_usage(self, asked: ReadUsage) -> None:
        if self._sampler is not None:
            uses = self._sampler.usage_of(asked.attempts)
            files = self._sampler.devices.files() if asked.devices else {}
            self._link.send(UsageData(asked.number, uses, files))

    def _from_keeper(self, entries: list[Entry]) -> None:
        self._set_time()
        if any(isinstance(one, ExitEntry) and may_be_killed(one) for one in entries):
            self._core.usage.oom_kills(oom_kills(), self._core.now_s)
        for entry in self._mps.incoming(entries):
            if isinstance(entry, HelloEntry):
                self._ports.adopt(entry)
                self._read_listed(entry)
                if self._sampler is not None:
                    self._sampler.keeper_connected(entry)
            known = with_kernel_status(entry, self._watch.status)
            if not (isinstance(known, ExitEntry) and self._reads_output(known)):
                self._core.from_keeper(known)
        self._flush()

    def _reads_output(self, entry: ExitEntry) -> bool:
        """Begin to read why an attempt failed, if its output may tell."""
        files = self._core.usage.telling_files(entry)
        if files and self._ends is not None:
            self._ends.read(entry, files)
            return True
        return False

    def _read_listed(self, hello: HelloEntry) -> None:
        """Read why attempts failed while there was no daemon."""
        listed = (
            (one.id, self._core.usage.own_files_of(one)) for one in hello.attempts
        )
        told = ((name, files) for name, files in listed if files)
        for name, files in islice(told, MOST_RECOVERED):
            self._core.usage.output_ended(name, ends_of(files))

    def _output_ended(self, entry: ExitEntry, tail: bytes) -> None:
        self._set_time()
        faulty = self._core.usage.output_ended(entry.id, tail, self._core.now_s)
        if faulty:
            self._mps.faulted(faulty)
        self._core.from_keeper(entry)
        self._flush()

    def _units_found(self) -> None:
        """Tell the broker that GPUs have come, gone or been divided."""
        assert self._gpus is not None
        self._set_time()
        whole = found_units(self._gpus.units(), self._gpus.topology())
        found = allotted_units(whole, self._core.around.allotted)
        self._offer(gpus=found.get("gpu", {}), gpu_memory=gpu_memory(found))
        self._core.units_found(found)
        self._flush()

    def _offer(self, **what: Any) -> None:  # noqa: ANN401 -- fields of `Surroundings`
        """Change what the next jobs are offered."""
        self._core.around = self._core.around._replace(**what)

    def _set_time(self) -> None:
        self._core.now_s = boot_s()
        self._core.wall_us = time.time_ns() // 1000

    def _flush(self) -> None:
        effects = self._core.take()
        for event in effects.log_events:
            log.write(event)
        if effects.to_keeper:
            crash_point("worker.before-" + name_of(type(effects.to_keeper[0])))
        if self._keeper is not None:
            self._keeper.send(self._mps.outgoing(effects.to_keeper))
        self._await_mps()
        if effects.to_broker:
            crash_point("worker.before-report")
        for message in effects.to_broker:
            self._link.send(message)
        self._watch_processes(effects)
        if self._sampler is not None:
            self._sampler.wake()
            if effects.look:
                self._sampler.look_soon()

    def _await_mps(self) -> None:
        """Wait beside all else until control daemons of MPS are ready."""
        started, self._mps.started = self._mps.started, {}
        for unit, pid in started.items():
            if self._create_task is not None:
                self._create_task(self._mps_started(unit, pid))
        for unit in self._mps.failed:
            log.warning("mps.failed", gpu=unit)
        self._mps.failed.clear()

    async def _mps_started(self, unit: str, pid: int) -> None:
        assert self._core.around.mps is not None
        pipes = f"{self._core.around.mps.folder}/{unit}/pipe"
        self._mps.ready(unit, await is_ready(pipes, pid))
        self._flush()

    def _watch_processes(self, effects: WorkerEffects) -> None:
        gone = set(effects.unwatch)
        for attempt, (pid, ticks) in effects.watch.items():
            if attempt not in gone:
                self._watch.add(attempt, pid, ticks)
        for attempt in gone:
            self._watch.drop(attempt)
        for attempt in effects.ended_inputs:
            remove_socket(self._keeper_folder, attempt)


def _wants_port(start: Start) -> bool:
    """Tell whether a job has a GPU, and an environment that grass makes."""
    return start.guest is None and not GPU_KINDS.isdisjoint(start.allocation)
