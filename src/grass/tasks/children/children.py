"""The child processes of a program: who is idle, who runs what, who has died.

A child sees the devices that it was started with, so children are kept by these. One
that has ended its task is kept for the next. To a child with short tasks further ones
are sent ahead; if its task takes longer than that, these are taken back.
"""

from __future__ import annotations

import time

import anyio

from grass.errors import UsageError
from grass.model.resources import GPU_KINDS, unit_order
from grass.tasks.children import payloads
from grass.tasks.children.child import ChildProcess
from grass.tasks.children.frames import READY, RESULT
from grass.tasks.errors import TaskFailed, TaskLost, death, raised_error
from grass.tasks.functions import Functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.model.resources import Request
    from grass.tasks.children.child_record import ChildRecord
    from grass.tasks.children.frames import Frame
    from grass.tasks.core.task_units import TaskStart
    from grass.tasks.program_units import ProgramUnits
    from grass.tasks.session import Session
    from grass.tasks.task import Task

_AHEAD_S = 0.004
"""Tasks are sent ahead for about so long."""
_MOST_AHEAD = 32
_LONG_S = 0.02
"""Behind a task that takes longer none is left."""
_MOST_IDLE = 64


class Children:
    """All child processes of a session."""

    def __init__(
        self,
        session: Session,
        program: ProgramUnits,
        functions: Functions | None = None,
    ) -> None:
        self._session = session
        self._program = program
        self._functions = functions or Functions()
        self._all: dict[ChildRecord, None] = {}
        self._idle: dict[ChildRecord, None] = {}
        self._unsent: dict[ChildRecord, None] = {}
        self._watched: anyio.Event | None = None

    @property
    def running(self) -> int:
        """How many of them run a task."""
        return sum(bool(child.sent) for child in self._all)

    def find_devices(self, request: Request) -> None:
        """Look for GPUs when the first task asks for one."""
        if not GPU_KINDS.isdisjoint(kind for kind, _ in request):
            self._session.units.add_capacity(self._program.found_gpus())

    def run(self, task: Task) -> None:
        """Run a task that has its units."""
        start = task.start
        assert start is not None
        try:
            number, data, descriptor = self._functions.call(task)
        except UsageError as error:
            self._session.drop(task)
            task.owner.failed(task, error)
            return
        child = self._child_for(task, start)
        self._hold(child, start)
        if number >= 0:
            child.teach(number, self._functions.data[number])
        child.add(task, data, descriptor)
        self._unsent[child] = None
        if task.limit_s is not None:
            self._watch_soon()
        self._send_ahead(child)

    def flush(self) -> None:
        """Send what was put together in this turn."""
        unsent, self._unsent = self._unsent, {}
        for child in unsent:
            child.flush(self._session.start_soon)

    def _child_for(self, task: Task, start: TaskStart) -> ChildRecord:
        units = {name for kind in GPU_KINDS for name in start.allocation.get(kind, ())}
        gpus = sorted(units, key=unit_order)
        key = self.key_of(task, gpus)
        for child in self._idle:
            if child.key == key:
                del self._idle[child]
                return child
        if len(self._idle) > _MOST_IDLE:
            first = next(iter(self._idle))
            del self._idle[first]
            first.leave()
        child = self.new_child(key, gpus)
        self._all[child] = None
        self._session.start_soon(self._serve, child)
        return child

    def key_of(self, _task: Task, gpus: list[str]) -> str:
        """Return the key of the children that can run a task with these GPUs."""
        return ",".join(gpus)

    def new_child(self, key: str, gpus: list[str]) -> ChildRecord:
        """Start a child that sees these GPUs."""
        return ChildProcess(self._program.variables(gpus), key)

    def _hold(self, child: ChildRecord, start: TaskStart) -> None:
        held = (start.allocation, start.own if start.own.parts else None)
        if child.held != held or held[1] is not None:
            child.held = held
            child.hold(*payloads.dump(held))

    def _send_ahead(self, child: ChildRecord) -> None:
        """Send tasks to a child that take over what its task holds."""
        if child.average_s is None or child.is_killed:
            return
        ahead = min(_MOST_AHEAD, int(_AHEAD_S / (child.average_s + 1e-9)))
        if len(child.sent) > ahead // 2:
            return
        head, units = child.sent[0], self._session.units
        while len(child.sent) <= ahead:
            # One that follows and was not sent is the last: see `at_most`.
            follower = units.follow(head.number, at_most=len(child.sent))
            if follower is None or not self._send_one(child, follower):
                break
            self._unsent[child] = None
        if len(child.sent) > 1:
            self._watch_soon()

    def _send_one(self, child: ChildRecord, follower: int) -> bool:
        task = self._session.task(follower)
        assert task.ask is not None
        if task.is_async or task.limit is not None or task.ask.own.parts:
            return False
        try:
            number, data, descriptor = self._functions.call(task)
        except UsageError as error:
            self._session.drop(task)
            task.owner.failed(task, error)
            return True
        if number >= 0:
            child.teach(number, self._functions.data[number])
        child.add(task, data, descriptor)
        return True

    async def _serve(self, child: ChildRecord) -> None:
        """Take the answers of a child until it has died."""
        try:
            while frames := await child.answers():
                for frame in frames:
                    self._answered(child, frame)
                self.flush()
        finally:
            if child.sent and not child.is_leaving:
                child.kill()
            else:
                child.leave()
            exit_code = await child.exit_code()
            self._died(child, exit_code)

    def _answered(self, child: ChildRecord, frame: Frame) -> None:
        if frame.kind == READY:
            child.started()
            return
        task, session = child.done(frame.number, frame.seconds), self._session
        follower = session.release(task)
        if follower is not None and child.sent:
            child.sent[0].start = follower
            assert child.sent[0].number == follower.task
            self._send_ahead(child)
        else:
            assert not child.sent
            if not child.is_killed:
                self._idle[child] = None
            if follower is not None:
                session.begin(follower)
        if frame.kind == RESULT:
            if task.limit is not None:
                task.limit.note_run(frame.seconds)
            _bring(task, frame)
        else:
            self._failed(task, self.raised(task, frame))

    def raised(self, task: Task, frame: Frame) -> BaseException:
        """Return the exception that a task has raised."""
        return raised_error(frame.data, task.name)

    def _failed(self, task: Task, error: BaseException) -> None:
        temporary = isinstance(error, task.options.temporary_err)
        if temporary and task.may_run_again(failed_by_itself=True):
            self._session.submit_again(task)
        else:
            task.owner.failed(task, error)

    def _died(self, child: ChildRecord, exit_code: int) -> None:
        del self._all[child]
        self._idle.pop(child, None)
        self._unsent.pop(child, None)
        self._take_back(child)
        lost = list(child.sent)
        child.sent.clear()
        child.close()
        for task in lost:
            self._lost(task, child, exit_code)
        child.gone.set()

    def _lost(self, task: Task, child: ChildRecord, exit_code: int) -> None:
        self._session.give_back(task)
        if task.number in child.cancelled:
            return
        error = child.killed_for
        if error is None and task.may_run_again(failed_by_itself=False):
            self._session.submit_again(task)
            return
        if error is None:
            error = self.death(task, child, exit_code)
        task.owner.failed(task, error)

    def death(self, task: Task, child: ChildRecord, exit_code: int) -> TaskLost:
        """Return the error of a task whose child has died."""
        return death(task.name, exit_code, child.name, task.tries)

    def cancel(self, tasks: dict[int, Task]) -> list[ChildRecord]:
        """Kill the children that run some of these tasks, and return those children.

        Those that were only sent ahead wait again.
        """
        dying = []
        for child in self._all:
            if any(task.number in tasks for task in child.sent):
                self._take_back(child)
            if any(task.number in tasks for task in child.sent):
                child.cancelled.update(tasks)
                child.kill()
                dying.append(child)
        return dying

    def _take_back(self, child: ChildRecord) -> None:
        for task in child.recall():
            self._session.wait_again(task)
            self._unsent[child] = None

    async def leave(self) -> None:
        """Have all children leave, and wait for that."""
        children = list(self._all)
        for child in children:
            child.leave()
        for child in children:
            await child.gone.wait()

    async def watch(self) -> None:
        """Look at children with time limits, or with tasks that were sent ahead."""
        while True:
            self._watched = anyio.Event()
            await self._watched.wait()
            is_needed = self._look()
            while is_needed:
                await anyio.sleep(_LONG_S)
                is_needed = self._look()

    def _watch_soon(self) -> None:
        if self._watched is not None:
            self._watched.set()

    def _look(self) -> bool:
        now, is_needed = time.monotonic(), False
        for child in self._all:
            if not child.sent:
                continue
            task, passed_s = child.sent[0], now - child.head_at
            limit_s = task.limit_s if child.is_ready else None
            if limit_s is not None and passed_s > limit_s:
                child.kill(task.overtime())
            elif len(child.sent) > 1 and passed_s > _LONG_S:
                self._take_back(child)
            is_needed |= task.limit_s is not None or len(child.sent) > 1
        self.flush()
        return is_needed


def _bring(task: Task, frame: Frame) -> None:
    """Hand the result of a task to its owner."""
    try:
        task.value = payloads.load(frame.data, frame.descriptor)
    except Exception as error:  # noqa: BLE001 -- a user's class may do anything
        lost = TaskFailed(f"the result of `{task.name}` cannot be read here: {error}")
        lost.__cause__ = error
        task.owner.failed(task, lost)
    else:
        task.owner.succeeded(task)
