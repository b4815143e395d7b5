"""The children of one task host, and functions as bytes for other machines."""

from __future__ import annotations

from grass.tasks.children.children import Children
from grass.tasks.children.payloads import is_plain_call
from grass.tasks.errors import ChildTraceback, TaskFailed, TaskLost, death
from grass.tasks.functions import MOST, NONE, Functions
from grass.tasks.host.host_program import COROUTINES
from grass.tasks.machines.remote_child import RemoteChild
from grass.tasks.neighbours import with_neighbours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from grass.model.resources import Request
    from grass.tasks.children.child_record import ChildRecord
    from grass.tasks.children.frames import Frame
    from grass.tasks.functions import Snapshot
    from grass.tasks.machines.task_host import TaskHost
    from grass.tasks.program_units import ProgramUnits
    from grass.tasks.session import Session
    from grass.tasks.task import Task


class SentFunctions(Functions):
    """Functions as other machines need them: with modules beside the script."""

    def number(self, function: Callable[..., Any], snapshot: Snapshot) -> int:
        """Return the number of a function, which differs from that for children."""
        # The identity of an object is positive: this is a key of its own.
        known = snapshot.get(~id(function))
        if known is None:
            if len(self.data) >= MOST:
                return NONE
            with with_neighbours():
                known = snapshot[~id(function)] = function, self._add(function)
        number: int = known[1]
        return number

    def call(self, task: Task) -> tuple[int, bytes, int | None]:
        """Return the number of a task's function and its call as bytes."""
        assert task.function is not None
        number = self.number(task.function, task.owner.snapshot)
        if number >= 0 and is_plain_call(task.args) and not task.more:
            return super().call(task)
        with with_neighbours():
            return super().call(task)


class HostChildren(Children):
    """All children of a task host."""

    def __init__(
        self,
        session: Session,
        program: ProgramUnits,
        functions: SentFunctions,
        host: TaskHost,
    ) -> None:
        super().__init__(session, program, functions)
        self._host = host
        self._count = 0

    def find_devices(self, _request: Request) -> None:
        """Look for nothing: what the host has is known."""

    def key_of(self, task: Task, gpus: list[str]) -> str:
        """Return the key of the children that can run a task with these GPUs."""
        return COROUTINES.decode() if task.is_async else ",".join(gpus)

    def new_child(self, key: str, _gpus: list[str]) -> ChildRecord:
        """Have the host start a child."""
        self._count += 1
        child = RemoteChild(self._count, key, self._host.put, self._host.teach)
        self._host.children[self._count] = child
        return child

    def death(self, task: Task, child: ChildRecord, exit_code: int) -> TaskLost:
        """Return the error of a task whose child or machine is gone."""
        host = self._host
        if host.loss:
            again = f", the {task.tries}. time" if task.tries > 1 else ""
            return TaskLost(f"`{task.name}` is lost{again}: {host.loss}")
        return death(task.name, exit_code, f"{child.name} on {host.name}", task.tries)

    def raised(self, task: Task, frame: Frame) -> BaseException:
        """Return the exception that a task has raised; say which module is missing."""
        error = super().raised(task, frame)
        if not isinstance(error, ModuleNotFoundError) or not error.name:
            return error
        missing = TaskFailed(
            f"`{task.name}` needs the module `{error.name}`, which"
            f" {self._host.about()} does not have; {_version_here(error.name)}",
            "install it there, or name an interpreter that has it: `grass config set"
            " tasks.python PROGRAM` there",
        )
        cause = error.__cause__
        missing.__cause__ = cause if isinstance(cause, ChildTraceback) else error
        return missing


def _version_here(module: str) -> str:
    """Say which version of a module this program has."""
    import platform
    from importlib import metadata

    here = f"here, with Python {platform.python_version()},"
    package = module.partition(".")[0]
    names = metadata.packages_distributions().get(package, [package])
    try:
        return f"{here} it is version {metadata.version(names[0])}"
    except metadata.PackageNotFoundError:
        return f"{here} it is not of an installed package"
