"""A process that runs tasks, as the program sees it: what it was sent and holds.

`ChildProcess` is one on this machine, `RemoteChild` one of a task host. `Children` uses
both by what is here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque

import anyio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from grass.tasks.children.frames import Frame
    from grass.tasks.task import Task

    StartSoon = Callable[[Callable[[], Coroutine[Any, Any, None]]], object]


class ChildRecord(ABC):
    """The tasks that a process has, and what became of it."""

    def __init__(self, key: str) -> None:
        self.key = key
        """The devices that it sees."""
        self.sent: deque[Task] = deque()
        """Its tasks, in order: the first runs, the others were sent ahead."""
        self.head_at = 0.0
        """When the first of them began to run, at the earliest."""
        self.average_s: float | None = None
        """How long its tasks take; None: nothing is sent ahead to it."""
        self.functions: set[int] = set()
        """The numbers of the functions that it knows."""
        self.killed_for: BaseException | None = None
        """Why it was killed, if it was."""
        self.cancelled: set[int] = set()
        """The numbers of tasks that nobody waits for any more."""
        self.held: object = None
        """What its tasks hold."""
        self.is_ready = self.is_killed = self.is_leaving = self.is_gone = False
        self.gone = anyio.Event()

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in messages."""

    @abstractmethod
    def hold(self, data: bytes, descriptor: int | None) -> None:
        """Tell what the tasks that follow hold."""

    @abstractmethod
    def teach(self, number: int, data: bytes) -> None:
        """Send a function, unless the child knows it."""

    @abstractmethod
    def send(self, number: int, data: bytes, descriptor: int | None) -> None:
        """Send a task, by its number."""

    @abstractmethod
    def recall(self) -> list[Task]:
        """Take back tasks that have not begun, the last ones first."""

    @abstractmethod
    def flush(self, start_soon: StartSoon) -> None:
        """Send frames without waiting; `start_soon` runs the task that sends the rest.

        May be called again while that task runs.
        """

    @abstractmethod
    async def answers(self) -> list[Frame]:
        """Wait for answers; an empty list is the end."""

    @abstractmethod
    def kill(self, why: BaseException | None = None) -> None:
        """Kill it with all that it has started."""

    @abstractmethod
    def leave(self) -> None:
        """Have it leave once it has nothing to do."""

    @abstractmethod
    async def exit_code(self) -> int:
        """Wait for its end; minus a signal's number where one has killed it."""

    @abstractmethod
    def close(self) -> None:
        """Close all descriptors."""

    def add(self, task: Task, data: bytes, descriptor: int | None) -> None:
        """Send a task, to be run after those sent before."""
        if not self.sent:
            self.head_at = time.monotonic()
        self.sent.append(task)
        self.send(task.number, data, descriptor)

    def started(self) -> None:
        """Note that it runs now; what it was sent begins at the earliest now."""
        self.is_ready = True
        self.head_at = time.monotonic()

    def done(self, task_number: int, seconds: float) -> Task:
        """Note that the first task has ended, and return it."""
        task = self.sent.popleft()
        assert task.number == task_number, f"{task.number} is not {task_number}"
        self.head_at = time.monotonic()
        before = self.average_s
        self.average_s = seconds if before is None else 0.8 * before + 0.2 * seconds
        return task
