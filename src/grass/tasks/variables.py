"""What a task can ask about itself: `GVAR.res` and `GVAR.instance`.

The values belong to the running task, also where several share one event loop. What was
given is made into a `Resource` when it is asked for: most tasks do not ask.
"""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.model.resources import Allocation
    from grass.resource import Resource

    Held = tuple[Allocation, "Resource | None"]

HOST_VARIABLE = "GRASS_TASK_HOST"
"""In a task host and its children: the host's job."""
held: ContextVar[Held] = ContextVar("grass_task_held")
"""The units of the task that runs here, and its parts of the user's own."""
of_job: ContextVar[str] = ContextVar("grass_task_job")
"""The job that a function is of which a runner has called."""
in_child: ContextVar[bool] = ContextVar("grass_task_in_child", default=False)
"""Whether this process runs plain functions for another one."""


class TaskVariables:
    """The variables of the task that runs here."""

    @property
    def res(self) -> Resource:
        """What the task holds, such as `CPU([6, 7, 9])`."""
        from grass.resource import given

        found = held.get(None)
        if found is None:
            raise LookupError(
                "`GVAR.res` is what a task holds, and no task runs here: read it in a "
                "function that is submitted, or run by `exec1`"
            )
        allocation, own = found
        units = given(allocation)
        return units & own if own is not None else units

    @property
    def instance(self) -> str:
        """The machine that the task runs on; `N/A` outside of a task."""
        if held.get(None) is None:
            return "N/A"
        import os

        job = of_job.get(None) or os.environ.get(HOST_VARIABLE)
        return f"{os.uname().nodename}({'local' if job is None else f'job {job}'})"


GVAR = TaskVariables()
