"""The tasks of one program while it runs: they come, get units, run and end.

Everything happens in one event loop, asyncio's or trio's. Tasks that come in one turn
of the loop are decided together in the next. A coroutine function runs in the task
group of its owner; a plain function goes to a child process. A task that is given units
of another machine goes there, of either kind. Always true: a task is in
the inbox, or waits in `units`, or has a `start`; when it has ended it is none of that.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from itertools import groupby

import anyio

from grass.errors import UsageError
from grass.resource import ZERO
from grass.tasks import variables
from grass.tasks.children.children import Children
from grass.tasks.core.task_units import HERE, TaskStart, TaskUnits
from grass.tasks.errors import TaskLost
from grass.tasks.progress import Progress
from grass.tasks.task import Options, Task, check_is_function
from grass.tasks.task_requests import NOTHING, TaskRequests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from types import TracebackType
    from typing import Any, Self

    from grass.model.resources import Capacity
    from grass.resource import Resource
    from grass.tasks.program_units import ProgramUnits
    from grass.tasks.task import Owner
    from grass.tasks.variables import Held

current: ContextVar[Session | None] = ContextVar("grass_session", default=None)
"""The session that code runs in."""


def session_for(caller: str) -> Session:
    """Return the session that this code runs in, or say how to get one."""
    found = current.get()
    if found is not None:
        return found
    if variables.in_child.get():
        raise UsageError(
            f"`{caller}` does not work in a process that runs a plain function",
            "make it `async` and run it by `start_subtask`: then it may submit more",
        )
    raise UsageError(
        f"`{caller}` works inside of `run_combine`",
        "put it into an `async def main()` and call `run_combine(main)`",
    )


class Session:
    """The tasks of one program, the units for them, and its child processes."""

    def __init__(self, program: ProgramUnits, options: Options | None = None) -> None:
        self.options = options or Options()
        self.units = TaskUnits(program.capacity, program.own)
        self._count = 0
        self._inbox: list[Task] = []
        self._tasks: dict[int, Task] = {}
        self._children = Children(self, program)
        find_devices = self._children.find_devices
        self._requests = TaskRequests(self.units, find_devices, program.time)
        self._machines: dict[str, Children] = {HERE: self._children}
        """The processes for tasks: of this machine, and of each task host."""
        self.ended = 0
        """How many tasks have ended."""
        self.progress = Progress(self)
        self.on_leave: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """What is to be done when the program is done, beside each other."""
        self._failure: BaseException | None = None

    async def __aenter__(self) -> Self:
        """Begin to take tasks."""
        self._wanted = anyio.Event()
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._decide_always)
        self._group.start_soon(self._children.watch)
        self._group.start_soon(self.progress.show)
        self._token = current.set(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """End the child processes; those of tasks that run are killed."""
        current.reset(self._token)
        if error is None:
            await self._leave()
        self._group.cancel_scope.cancel()
        is_handled = await self._group.__aexit__(kind, error, traceback)
        if self._failure is not None:
            raise self._failure
        return is_handled

    async def connect(self) -> None:
        """Connect to where tasks run, if that is not here."""

    async def _leave(self) -> None:
        async with anyio.create_task_group() as group:
            for leave in (self._children.leave, *self.on_leave):
                group.start_soon(leave)

    def fail(self, error: BaseException) -> None:
        """End the program with an error that none of its tasks has raised."""
        self._failure = self._failure or error
        self._group.cancel_scope.cancel()

    @property
    def running(self) -> int:
        """How many tasks have units."""
        return len(self._tasks) - self.units.waiting()

    @property
    def waiting(self) -> int:
        """How many tasks wait."""
        return self.units.waiting() + len(self._inbox)

    def submit(
        self,
        owner: Owner,
        options: Options,
        res: Resource,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        more: dict[str, Any],
    ) -> Task:
        """Have a task wait for its units; refuse one that can never have them."""
        task = Task(owner, options, function, args, more)
        task.ask = self._requests.of(task, res)
        check_is_function(function)
        self._count += 1
        task.number = self._count
        if task.is_async and task.ask is NOTHING:
            task.start = TaskStart(task.number, {}, ZERO)
            owner.begin(task)
        else:
            self._inbox.append(task)
            self._wanted.set()
        return task

    def run_on_held(
        self,
        owner: Owner,
        held: Held,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        more: dict[str, Any],
    ) -> Task:
        """Run a plain function in a child, on what a task holds that runs already."""
        task = Task(owner, Options(reschedule=False), function, args, more)
        self._count += 1
        task.number = self._count
        task.start = TaskStart(task.number, held[0], held[1] or ZERO)
        self._children.run(task)
        self._children.flush()
        return task

    def machines(self) -> dict[str, int | None]:
        """Return how many tasks run on other machines; None: one is still to come."""
        found = self.units.others()
        has = self._machines
        return {name: has[name].running if name in has else None for name in found}

    def expect_machine(self, name: str, capacity: Capacity) -> None:
        """Accept tasks that only a machine can run which is still to come."""
        self.units.expect_worker(name, capacity)

    def add_machine(self, name: str, capacity: Capacity, processes: Children) -> None:
        """Have tasks run on another machine, too."""
        self._machines[name] = processes
        self._group.start_soon(processes.watch)
        self.units.add_worker(name, capacity)
        self._wanted.set()

    def remove_machine(self, name: str) -> None:
        """Start nothing more on a machine; what runs there has to end.

        Tasks that only it could run fail.
        """
        self.units.remove_worker(name)
        self._requests.forget()
        for task in list(self._tasks.values()):
            assert task.ask is not None
            if task.start is None and not self.units.can_be_met(task.ask):
                del self._tasks[task.number]
                self.units.removed(task.number)
                task.owner.failed(task, self._unmet(task, name))

    def _unmet(self, task: Task, machine: str) -> TaskLost:
        return TaskLost(
            f"`{task.name}` cannot run any more: {machine} is gone, and there is"
            f" {self.units.text()}"
        )

    def check(self, res: Resource) -> None:
        """Refuse what can never be met."""
        self._requests.check(res)

    def begin(self, start: TaskStart) -> None:
        """Run a task that has its units."""
        task = self._tasks[start.task]
        task.start = start
        if task.owner.is_cancelled:
            self.drop(task)
        elif task.limit is not None and not self._has_time(task):
            return
        elif start.worker != HERE:
            self._machines[start.worker].run(task)
        elif task.is_async:
            task.owner.begin(task)
        else:
            self._children.run(task)

    def _has_time(self, task: Task) -> bool:
        try:
            self._requests.check_time(task)
        except TimeoutError as error:
            self.drop(task)
            task.owner.failed(task, error)
            return False
        return True

    async def call(self, task: Task) -> Any:  # noqa: ANN401 -- what the function returns
        """Run a coroutine function that has its units, and give them back."""
        start, function = task.start, task.function
        assert start is not None
        assert function is not None
        own = start.own if start.own.parts else None
        token = variables.held.set((start.allocation, own))
        try:
            while True:
                try:
                    if task.limit is None:
                        return await function(*task.args, **(task.more or {}))
                    return await _limited(task, function)
                except task.options.temporary_err:
                    if not task.may_run_again(failed_by_itself=True):
                        raise
                    task.tries += 1
        finally:
            variables.held.reset(token)
            self.give_back(task)

    def give_back(self, task: Task) -> None:
        """Free the units of a task that has ended, and run the one that gets them."""
        follower = self.release(task)
        if follower is not None:
            self.begin(follower)
            self._flush()

    def _flush(self) -> None:
        for processes in self._machines.values():
            processes.flush()

    def release(self, task: Task) -> TaskStart | None:
        """Free the units of a task that has ended; return the one that got them."""
        task.start = None
        self.ended += 1
        if self._tasks.pop(task.number, None) is None:
            return None
        follower = self.units.hand_over(task.number)
        if follower is None and self.units.waiting():
            self._wanted.set()
        return follower

    def task(self, number: int) -> Task:
        """Return a task that waits or has units."""
        return self._tasks[number]

    def wait_again(self, task: Task) -> None:
        """Have a task wait that followed another one."""
        assert task.ask is not None
        self.units.recall(task.number, task.ask)
        self._wanted.set()

    def submit_again(self, task: Task) -> None:
        """Have a task wait once more, in its old place; its units were given back."""
        task.tries += 1
        self.ended -= 1
        self._inbox.append(task)
        self._wanted.set()

    def drop(self, task: Task) -> None:
        """Free the units of a task that could not be begun."""
        task.start = None
        if self._tasks.pop(task.number, None) is not None:
            self.ended += 1
            self.units.ended(task.number)
            self._wanted.set()

    def start_soon(
        self,
        function: Callable[..., Coroutine[Any, Any, None]],
        *args: Any,  # noqa: ANN401
    ) -> None:
        """Run something for this session until it ends."""
        self._group.start_soon(function, *args)

    async def cancel(self, tasks: Iterable[Task]) -> None:
        """End tasks, whether they wait or run; return when none of them runs.

        Coroutine functions that run are cancelled by their owner's task group.
        """
        open_tasks = {task.number: task for task in tasks}
        self._inbox = [one for one in self._inbox if one.number not in open_tasks]
        dying = [
            child
            for processes in self._machines.values()
            for child in processes.cancel(open_tasks)
        ]
        # A child may have begun what it was sent ahead: that ends when the child does.
        begun = {task.number for child in dying for task in child.sent}
        for number in open_tasks.keys() & self._tasks.keys() - begun:
            if open_tasks[number].start is None:
                del self._tasks[number]
                self.units.removed(number)
        if self.units.waiting():
            self._wanted.set()
        for child in dying:
            await child.gone.wait()

    async def _decide_always(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            self._decide()

    def _decide(self) -> None:
        inbox, self._inbox = self._inbox, []
        for _, alike in groupby(inbox, key=lambda task: id(task.ask)):
            tasks = {task.number: task for task in alike}
            self._tasks.update(tasks)
            ask = next(iter(tasks.values())).ask
            assert ask is not None
            self.units.submit(list(tasks), ask)
        for start in self.units.decide(time.monotonic()):
            self.begin(start)
        self._flush()


async def _limited(task: Task, function: Callable[..., Any]) -> Any:  # noqa: ANN401
    assert task.limit is not None
    began = time.monotonic()
    with anyio.move_on_after(task.limit_s):
        value = await function(*task.args, **(task.more or {}))
        task.limit.note_run(time.monotonic() - began)
        return value
    raise task.overtime()
