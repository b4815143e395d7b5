"""Notifications: the user's own commands, run when jobs have ended.

The broker tells of ends once they are committed. A few commands run at a time, each for
a limited time; the rest wait, up to a limit, and what is dropped beyond that is said in
the log. Nothing here can fail the queue: a command that cannot start, fails or hangs is
a line in the log. Failures go before other ends, so that a flood of successes does not
keep them waiting.
"""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from grass.logs import EventLog
from grass.model.job import Job
from grass.model.lifecycle import ENDED, JobState
from grass.model.times import rfc3339
from grass.settings import Command, Settings

log = EventLog(__name__)

MOST_AT_ONCE = 4
MOST_WAITING = 1000
LIMIT_S = 60.0
MOST_LOGGED = 8192
"""How many bytes of what a command says are kept."""

FAILED = frozenset({JobState.FAILED, JobState.LOST})

OutputOf = Callable[[int, int], Awaitable[str]]
"""Finds the output file of a job's attempt; empty when it has none."""


class Around(NamedTuple):
    """What commands run in: never a job's surroundings, always the daemon's."""

    environment: Mapping[str, str]
    folder: str
    shell: str


class _Notice(NamedTuple):
    job: int
    attempt: int
    facts: dict[str, str]


class _Line:
    """The jobs that wait for one command."""

    def __init__(
        self, setting: str, event: str, command: Command, states: frozenset[JobState]
    ) -> None:
        self.setting = setting
        self.command = command
        self._event = event
        self._states = states
        self._waiting: deque[_Notice] = deque()
        self._dropped = 0

    def add(self, job: Job) -> None:
        if job.state not in self._states:
            return
        if len(self._waiting) < MOST_WAITING:
            facts = _facts(job, self._event)
            self._waiting.append(_Notice(job.id, job.attempts, facts))
            return
        if not self._dropped:
            log.warning(
                "notify.dropping", setting=self.setting, job=job.id, limit=MOST_WAITING
            )
        self._dropped += 1

    def next(self) -> _Notice | None:
        if self._waiting:
            return self._waiting.popleft()
        self.tell_dropped()
        return None

    def drop_all(self) -> None:
        self._dropped += len(self._waiting)
        self._waiting.clear()
        self.tell_dropped()

    def tell_dropped(self) -> None:
        if self._dropped:
            log.warning("notify.dropped", setting=self.setting, jobs=self._dropped)
        self._dropped = 0


class Notifier:
    """Runs the commands of `notify.on_fail` and `notify.on_finish`."""

    def __init__(self, settings: Settings, around: Around, output_of: OutputOf) -> None:
        self._lines = _lines(settings)
        self._around = around
        self._output_of = output_of
        self._pool = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="notify")
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False
        self._heard, self._halt = os.pipe()

    def ended(self, jobs: list[Job]) -> None:
        """Take note of jobs whose end has been committed; raises nothing."""
        try:
            for line in self._lines:
                for job in jobs:
                    line.add(job)
            self._start()
        except Exception as error:  # noqa: BLE001 -- the queue goes on
            log.defect(error)

    async def settle(self, patience_s: float) -> None:
        """Let what waits and runs come to its end, for a limited time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while self._running:
                    await asyncio.wait(self._running)

    async def aclose(self) -> None:
        """End what still runs, and drop what waits."""
        self._closed = True
        for line in self._lines:
            line.drop_all()
        os.close(self._halt)
        await asyncio.gather(*self._running)
        self._pool.shutdown()
        os.close(self._heard)

    def _start(self) -> None:
        while not self._closed and len(self._running) < MOST_AT_ONCE:
            found = next(self._waiting(), None)
            if found is None:
                return
            task = asyncio.get_running_loop().create_task(self._notify(*found))
            self._running.add(task)
            task.add_done_callback(self._finished)

    def _waiting(self) -> Iterator[tuple[_Line, _Notice]]:
        for line in self._lines:
            notice = line.next()
            if notice is not None:
                yield line, notice

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._start()

    async def _notify(self, line: _Line, notice: _Notice) -> None:
        try:
            output = await self._output_of(notice.job, notice.attempt)
            facts = {**notice.facts, "GRASS_OUTPUT": output}
            loop = asyncio.get_running_loop()
            run = loop.run_in_executor(
                self._pool, _run, line.command, facts, self._around, self._heard
            )
            _log_result(line.setting, notice.job, *await run)
        except (OSError, ValueError) as error:
            _log_failure(line.setting, notice.job, str(error))
        except Exception as error:  # noqa: BLE001 -- the queue goes on
            log.defect(error, setting=line.setting, job=notice.job)


def _lines(settings: Settings) -> list[_Line]:
    rows = (
        ("notify.on_fail", "failed", settings.on_fail, FAILED),
        ("notify.on_finish", "finished", settings.on_finish, ENDED),
    )
    return [
        _Line(setting, event, command, states)
        for setting, event, command, states in rows
        if command is not None
    ]


def _facts(job: Job, event: str) -> dict[str, str]:
    """Give what a command is told, as its environment."""
    facts: dict[str, object] = {
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
    return {
        f"GRASS_{name}": "" if value is None else str(value)
        for name, value in facts.items()
    }


def _run(
    command: Command, facts: Mapping[str, str], around: Around, halt: int
) -> tuple[bytes, str]:
    """Run one command to its end; return what it said and what went wrong."""
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
            said, problem = _listen(process.pid, process.stdout.fileno(), halt)
        finally:
            # Its end has not been taken note of yet, so the number is still its own:
            # nothing that it left behind stays, and no other process is hit.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
    return said, problem or _failure(code)


def _listen(pid: int, pipe: int, halt: int) -> tuple[bytes, str]:
    """Return once the process has exited and its output is at its end."""
    deadline = time.monotonic() + LIMIT_S
    exit_of = os.pidfd_open(pid)
    said = b""
    watched = select.poll()
    for descriptor in (pipe, exit_of, halt):
        watched.register(descriptor, select.POLLIN)
    open_ends = {pipe, exit_of}
    try:
        while open_ends:
            left_s = max(0.0, deadline - time.monotonic())
            ready = {descriptor for descriptor, _ in watched.poll(left_s * 1000)}
            if not ready:
                return said, f"ended after {LIMIT_S:g} s"
            if halt in ready:
                return said, "ended, because the daemon stops"
            piece = os.read(pipe, 65536) if pipe in ready else b""
            said += piece[: MOST_LOGGED - len(said)]
            for descriptor in ready - ({pipe} if piece else set()):
                watched.unregister(descriptor)
                open_ends.discard(descriptor)
    finally:
        os.close(exit_of)
    return said, ""


def _failure(code: int) -> str:
    if code < 0:
        return f"ended by signal {-code}"
    return f"exit code {code}" if code else ""


def _log_result(setting: str, job: int, said: bytes, problem: str) -> None:
    for line in said.decode(errors="backslashreplace").splitlines():
        log.info("notify.output", setting=setting, job=job, message=line)
    if problem:
        _log_failure(setting, job, problem)


def _log_failure(setting: str, job: int, problem: str) -> None:
    log.warning("notify.failed", setting=setting, job=job, error=problem)
