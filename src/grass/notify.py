"""Notifications: the user's own commands, run when jobs have ended or GPUs have failed.

The broker reports both once they are committed. A few commands run at a time, each for
a limited time; the rest wait, up to a limit, beyond which they are dropped and logged.
A command that cannot start, fails or hangs is logged and has no other effect. Failures
go before other ends, so that many successes do not delay them.
"""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from grass.event_log import EventLog
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.model.times import rfc3339
from grass.model.worker import GpuNotice
from grass.setting_values import NotifyCommand
from grass.settings import Settings

log = EventLog(__name__)

MOST_AT_ONCE = 4
MOST_WAITING = 1000
LIMIT_S = 60.0
MOST_LOGGED = 8192
"""How many bytes of a command's output are logged."""

FAILED = frozenset({JobState.FAILED, JobState.LOST})

OutputOf = Callable[[int, int], Awaitable[str]]
"""Finds the output file of a job's attempt; empty when it has none."""


class CommandEnvironment(NamedTuple):
    """What commands run in: the daemon's environment, never a job's."""

    environment: Mapping[str, str]
    folder: str
    shell: str


class _Notice(NamedTuple):
    job: int | None
    """None: it is about a GPU."""
    attempt: int
    facts: dict[str, str]


class _CommandQueue:
    """The ended jobs, or the GPUs, that one command is still to run for."""

    def __init__(
        self,
        setting: str,
        event: str,
        command: NotifyCommand,
        states: frozenset[JobState],
    ) -> None:
        """Without an event it is for GPUs."""
        self.setting = setting
        self.command = command
        self._event = event
        self._states = states
        self._waiting: deque[_Notice] = deque()
        self._dropped = 0

    def add(self, job: Job) -> None:
        if job.state in self._states:
            facts = _job_facts(job, self._event)
            self._append(_Notice(job.id, job.attempts, facts))

    def add_gpu(self, gpu: GpuNotice) -> None:
        if not self._event:
            self._append(_Notice(None, 0, _gpu_facts(gpu)))

    def _append(self, notice: _Notice) -> None:
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(notice)
            return
        if not self._dropped:
            log.warning(
                "notify.dropping",
                setting=self.setting,
                job=notice.job,
                limit=MOST_WAITING,
            )
        self._dropped += 1

    def next(self) -> _Notice | None:
        if self._waiting:
            return self._waiting.popleft()
        self.log_dropped()
        return None

    def drop_all(self) -> None:
        self._dropped += len(self._waiting)
        self._waiting.clear()
        self.log_dropped()

    def log_dropped(self) -> None:
        if self._dropped:
            log.warning("notify.dropped", setting=self.setting, jobs=self._dropped)
        self._dropped = 0


class Notifier:
    """Runs the commands of the settings `notify.*`."""

    def __init__(
        self, settings: Settings, around: CommandEnvironment, output_of: OutputOf
    ) -> None:
        self._queues = _queues(settings)
        self._around = around
        self._output_of = output_of
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="notify")
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False
        self._halted, self._halt = os.pipe()

    def notify(self, ended: list[Job], gpus: Sequence[GpuNotice] = ()) -> None:
        """Queue notifications of what was committed; raises nothing."""
        try:
            for queue in self._queues:
                for job in ended:
                    queue.add(job)
                for gpu in gpus:
                    queue.add_gpu(gpu)
            self._start()
        except Exception as error:  # noqa: BLE001 -- the queue goes on
            log.defect(error)

    async def finish(self, limit_s: float) -> None:
        """Wait until all commands have run, for a limited time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self._running:
                    await asyncio.wait(self._running)

    async def aclose(self) -> None:
        """End running commands, and drop those that wait."""
        self._closed = True
        for queue in self._queues:
            queue.drop_all()
        os.close(self._halt)
        await asyncio.gather(*self._running)
        self._pool.shutdown()
        os.close(self._halted)

    def _start(self) -> None:
        while not self._closed and len(self._running) < MOST_AT_ONCE:
            found = next(self._waiting(), None)
            if found is None:
                return
            task = asyncio.get_running_loop().create_task(self._notify(*found))
            self._running.add(task)
            task.add_done_callback(self._finished)

    def _waiting(self) -> Iterator[tuple[_CommandQueue, _Notice]]:
        for queue in self._queues:
            notice = queue.next()
            if notice is not None:
                yield queue, notice

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._start()

    async def _notify(self, queue: _CommandQueue, notice: _Notice) -> None:
        try:
            facts = notice.facts
            if notice.job is not None:
                output = await self._output_of(notice.job, notice.attempt)
                facts = {**facts, "GRASS_OUTPUT": output}
            loop = asyncio.get_running_loop()
            run = loop.run_in_executor(
                self._pool, _run, queue.command, facts, self._around, self._halted
            )
            _log_result(queue.setting, notice.job, *await run)
        except (OSError, ValueError) as error:
            _log_failure(queue.setting, notice.job, str(error))
        except Exception as error:  # noqa: BLE001 -- the queue goes on
            log.defect(error, setting=queue.setting, job=notice.job)


def _queues(settings: Settings) -> list[_CommandQueue]:
    rows = (
        ("notify.on_fail", "failed", settings.on_fail, FAILED),
        ("notify.on_finish", "finished", settings.on_finish, ENDED),
        ("notify.on_gpu_fault", "", settings.on_gpu_fault, frozenset[JobState]()),
    )
    return [
        _CommandQueue(setting, event, command, states)
        for setting, event, command, states in rows
        if command is not None
    ]


def _job_facts(job: Job, event: str) -> dict[str, str]:
    """Return the variables that describe a job."""
    return _variables(
        {
            "EVENT": event,
            "JOB_ID": job.id,
            "NAME": job.name,
            "PROJECT": job.project,
            "QUEUE": job.queue,
            "STATE": job.state.value,
            "EXIT_CODE": job.exit_code,
            "SIGNAL": job.signal,
            "REASON": job.reason,
            "STARTED_AT": rfc3339(job.started_at),
            "FINISHED_AT": rfc3339(job.finished_at),
            "ATTEMPT": job.attempts,
        }
    )


def _gpu_facts(gpu: GpuNotice) -> dict[str, str]:
    """Return the variables that describe a GPU."""
    return _variables(
        {
            "EVENT": gpu.event,
            "WORKER": gpu.worker,
            "UNIT": gpu.unit,
            "REASON": gpu.reason,
            "AT": rfc3339(gpu.at),
        }
    )


def _variables(facts: Mapping[str, object]) -> dict[str, str]:
    return {
        f"GRASS_{name}": "" if value is None else str(value)
        for name, value in facts.items()
    }


def _run(
    command: NotifyCommand,
    facts: Mapping[str, str],
    around: CommandEnvironment,
    halt: int,
) -> tuple[bytes, str]:
    """Run one command to its end; return its output and what went wrong."""
    words = [around.shell, "-c", command] if isinstance(command, str) else command
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=around.folder,
        env={**around.environment, **facts},
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        try:
            output, problem = _read_output(process.pid, process.stdout.fileno(), halt)
        finally:
            # It was not waited for yet, so the pid is still its own: all processes that
            # it left behind are killed, and no others.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    return output, problem or _failure(code)


def _read_output(pid: int, pipe: int, halt: int) -> tuple[bytes, str]:
    """Read until the process has exited and its output has ended."""
    deadline = time.monotonic() + LIMIT_S
    exit_of = os.pidfd_open(pid)
    output = b""
    watched = select.poll()
    for descriptor in (pipe, exit_of, halt):
        watched.register(descriptor, select.POLLIN)
    open_ends = {pipe, exit_of}
    try:
        while open_ends:
            left_s = max(0.0, deadline - time.monotonic())
            ready = {descriptor for descriptor, _ in watched.poll(left_s * 1000)}
            if not ready:
                return output, f"ended after {LIMIT_S:g} s"
            if halt in ready:
                return output, "ended, because the daemon stops"
            piece = os.read(pipe, 65536) if pipe in ready else b""
            output += piece[: MOST_LOGGED - len(output)]
            for descriptor in ready - ({pipe} if piece else set()):
                watched.unregister(descriptor)
                open_ends.discard(descriptor)
    finally:
        os.close(exit_of)
    return output, ""


def _failure(code: int) -> str:
    if code < 0:
        return f"ended by signal {-code}"
    return f"exit code {code}" if code else ""


def _log_result(setting: str, job: int | None, output: bytes, problem: str) -> None:
    for line in output.decode(errors="backslashreplace").splitlines():
        log.info("notify.output", setting=setting, job=job, message=line)
    if problem:
        _log_failure(setting, job, problem)


def _log_failure(setting: str, job: int | None, problem: str) -> None:
    log.warning("notify.failed", setting=setting, job=job, error=problem)
