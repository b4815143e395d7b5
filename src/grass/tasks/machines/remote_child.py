"""A child of a task host, used as one of this machine is.

It has one task at a time: what was sent ahead could not be taken back without asking.
"""

from __future__ import annotations

import anyio

from grass.tasks.children.child_record import ChildRecord
from grass.tasks.host.host_frames import HOLD, KILL, LEAVE, OPEN, TASK, TEACH, HostFrame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.tasks.children.child_record import StartSoon
    from grass.tasks.children.frames import Frame
    from grass.tasks.task import Task

_KILLED = -9


class RemoteChild(ChildRecord):
    """One child, which the host knows by its number."""

    def __init__(
        self,
        number: int,
        key: str,
        put: Callable[[HostFrame], None],
        teach: Callable[[int, bytes], None],
    ) -> None:
        """`put` sends a frame to the host; `teach` a function, unless it has it."""
        super().__init__(key)
        self.number = number
        self._put = put
        self._teach = teach
        self._arrived: list[Frame] = []
        self._news = anyio.Event()
        self._exit_code: int | None = None
        self._ended = anyio.Event()
        put(HostFrame(OPEN, number, data=key.encode()))

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return "process"

    def hold(self, data: bytes, descriptor: int | None) -> None:
        """Tell what the tasks that follow hold."""
        self._put(HostFrame(HOLD, self.number, data=data, descriptor=descriptor))

    def teach(self, number: int, data: bytes) -> None:
        """Send a function, unless the child knows it."""
        if number not in self.functions:
            self.functions.add(number)
            self._teach(number, data)
            self._put(HostFrame(TEACH, self.number, number))

    def send(self, number: int, data: bytes, descriptor: int | None) -> None:
        """Send a task, by its number."""
        self._put(HostFrame(TASK, self.number, number, data, descriptor))

    def recall(self) -> list[Task]:
        """Take back nothing: nothing is sent ahead."""
        return []

    def flush(self, _start_soon: StartSoon) -> None:
        """Leave sending to the conversation with the host."""

    def done(self, task_number: int, seconds: float) -> Task:
        """Note that the task has ended, and return it."""
        task = super().done(task_number, seconds)
        self.average_s = None
        return task

    def deliver(self, frame: Frame) -> None:
        """Take an answer of the child."""
        self._arrived.append(frame)
        self._news.set()

    def ended(self, exit_code: int) -> None:
        """Note that the child has died, or the host with it."""
        if self._exit_code is None:
            self._exit_code = exit_code
            self._news.set()
            self._ended.set()

    async def answers(self) -> list[Frame]:
        """Wait for answers; an empty list is the end."""
        while not self._arrived and self._exit_code is None:
            self._news = anyio.Event()
            await self._news.wait()
        arrived, self._arrived = self._arrived, []
        return arrived

    def kill(self, why: BaseException | None = None) -> None:
        """Kill it with all that it has started."""
        self.killed_for = self.killed_for or why
        if not self.is_killed and self._exit_code is None:
            self._put(HostFrame(KILL, self.number))
        self.is_killed = True

    def leave(self) -> None:
        """Have it leave once it has nothing to do."""
        if not self.is_leaving and self._exit_code is None:
            self._put(HostFrame(LEAVE, self.number))
        self.is_leaving = True

    async def exit_code(self) -> int:
        """Wait for its end; minus a signal's number where one has killed it."""
        with anyio.CancelScope(shield=True):
            await self._ended.wait()
        return _KILLED if self._exit_code is None else self._exit_code

    def close(self) -> None:
        """Note that it is gone."""
        self.is_gone = True
