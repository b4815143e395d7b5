"""The shell around the worker's core: it connects the keeper, the broker and files.

`run` lives as long as the daemon. The keeper outlives it: closing the connection leaves
every job running. When the keeper is lost another one is started, which adopts what its
predecessor left.
"""

import asyncio
import time
from typing import Any

from grass.event_log import EventLog
from grass.keeper.crash_points import crash_point
from grass.keeper.system.shortage import cause
from grass.link.channel import Link
from grass.link.messages import (
    CloseOutput,
    ReadOutput,
    RemoveOutput,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.worker.core.keeper_lines import tell_exits
from grass.worker.core.worker_core import WorkerCore
from grass.worker.shell.exit_watch import Watch
from grass.worker.shell.keeper_link import KeeperLink, open_keeper
from grass.worker.shell.output_files import OutputFiles

log = EventLog(__name__)

LONGEST_PAUSE_S = 5.0
TOLD_AFTER_S = 0.5
"""After a pause of so long the broker is told that there is no keeper."""


class Worker:
    """The agent of this machine."""

    def __init__(
        self,
        core: WorkerCore,
        link: Link[ToBroker, ToWorker],
        keeper_folder: str,
        output_folder: str,
        log_format: str = "text",
    ) -> None:
        """`run` makes it live; `log_format` is for a keeper that it starts."""
        self._core = core
        self._link = link
        self._keeper_folder = keeper_folder
        self._output_folder = output_folder
        self._log_format = log_format
        self._watch = Watch()
        self._keeper: KeeperLink | None = None
        self._lost = asyncio.Event()
        self.welcomed = asyncio.Event()
        """Set once a broker has taken this worker in."""

    @property
    def running(self) -> int:
        """Count the attempts that run here."""
        return self._core.running

    async def run(self) -> None:
        """Work until the link closes or the task is cancelled."""
        async with asyncio.TaskGroup() as group:
            keeping = group.create_task(self._keep_keeper())
            files = OutputFiles(self._output_folder, self._link.send, group.create_task)
            ended = asyncio.Event()
            self._link.listen(lambda batch: self._from_broker(batch, files), ended.set)
            try:
                await ended.wait()
            finally:
                keeping.cancel()
                files.close()
                self._watch.close()
                if self._keeper is not None:
                    self._keeper.close()

    async def _keep_keeper(self) -> None:
        pause_s = 0.1
        while True:
            self._lost.clear()
            # Known before it is connected: its first lines may call for an answer.
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
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                continue
            pause_s = 0.1
            await self._lost.wait()
            log.warning("keeper.lost")

    def _keeper_lost(self) -> None:
        self._keeper = None
        self._watch.hold_all()
        self._core.keeper_lost()
        self._lost.set()

    def _from_broker(self, messages: list[ToWorker], files: OutputFiles) -> None:
        self._tell_time()
        for message in messages:
            match message:
                case ReadOutput():
                    files.read(message)
                case CloseOutput():
                    files.close_stream(message)
                case RemoveOutput():
                    files.remove(message)
                case Welcome():
                    self._core.from_broker(message)
                    self.welcomed.set()
                case _:
                    self._core.from_broker(message)
        self._flush()

    def _from_keeper(self, lines: list[dict[str, Any]]) -> None:
        self._tell_time()
        for line in lines:
            tell_exits(line, self._watch.status)
            self._core.from_keeper(line)
        self._flush()

    def _tell_time(self) -> None:
        self._core.now_s = _boot_s()
        self._core.wall_us = time.time_ns() // 1000

    def _flush(self) -> None:
        effects = self._core.take()
        for event in effects.log_events:
            log.write(event)
        if effects.to_keeper:
            crash_point("worker.before-" + effects.to_keeper[0]["v"])
        if self._keeper is not None:
            self._keeper.send(effects.to_keeper)
        if effects.to_broker:
            crash_point("worker.before-report")
        for message in effects.to_broker:
            self._link.send(message)
        gone = set(effects.unwatch)
        for attempt, (pid, ticks) in effects.watch.items():
            if attempt not in gone:
                self._watch.add(attempt, pid, ticks)
        for attempt in gone:
            self._watch.drop(attempt)


def _boot_s() -> float:
    """Return seconds since boot, the time the machine slept included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
