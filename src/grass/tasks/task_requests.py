"""What tasks ask for: read from their resources, and refused where it can never be met.

Tasks that ask for the same share one request, so that the scheduler is asked once.
"""

from __future__ import annotations

from grass.model.amount_text import WHOLE
from grass.resource import WTime, counted, request_of
from grass.tasks.core.task_units import TaskRequest, TaskUnits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.model.resources import Request
    from grass.resource import Resource
    from grass.tasks.task import Task

NOTHING = TaskRequest(())
_ONE_CORE: Request = (("cpu", WHOLE),)


class TaskRequests:
    """The requests of a program's tasks."""

    def __init__(
        self,
        units: TaskUnits,
        find_devices: Callable[[Request], None],
        time: Resource | None,
    ) -> None:
        """`find_devices` looks for GPUs when the first task asks for one.

        `time` is how long the program itself may run; None: for as long as it takes.
        """
        self._units = units
        self._find_devices = find_devices
        self._time = time
        self._known: dict[tuple[Request, int], TaskRequest] = {}

    def of(self, task: Task, res: Resource) -> TaskRequest:
        """Return what a task asks for; `NOTHING` if it waits for no unit."""
        request, priority = request_of(res), task.options.priority
        if request is None:
            return self._of_parts(task, res)
        if not request:
            if task.is_async or "cpu" not in self._units.capacity:
                return NOTHING
            # Plain functions run at the same time, so each takes a core at least.
            request = _ONE_CORE
        known = self._known.get((request, priority))
        if known is None:
            self._find_devices(request)
            known = self._units.ask_for(request, priority)
            self._known[request, priority] = known
        return known

    def _of_parts(self, task: Task, res: Resource) -> TaskRequest:
        limit = res.parts.get("WTime")
        if isinstance(limit, WTime):
            task.limit = limit
            self.check_time(task)
        self._find_devices(counted(res))
        asked = self._units.ask(res, task.options.priority)
        return asked if asked.request or asked.own.parts else NOTHING

    def check(self, res: Resource) -> None:
        """Refuse what can never be met."""
        self._find_devices(counted(res))
        self._units.ask(res)

    def check_time(self, task: Task) -> None:
        """Note how long a task may take from now; refuse it if less time is left."""
        limit = None if task.limit is None else task.limit.known()
        task.limit_s = None if limit is None else limit.T
        if limit is None or self._time is None or self._time.request(limit):
            return
        raise TimeoutError(f"`{task.name}` needs {limit!r}: {self._time!r} is left")

    def forget(self) -> None:
        """Check all requests again: there is less than there was."""
        self._known.clear()
