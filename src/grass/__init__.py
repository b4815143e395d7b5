"""Grass: a job scheduler for people with a few GPUs and no cluster team.

For Python there are `job`, which decorates a function that needs a GPU, `allocate`,
which holds units while a block runs, and the verbs of the command line: `enqueue` and
`jobs`, and what can be done to these. They are imported when they are first used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass import errors as errors
    from grass.profiles.allocation import Allocation as Allocation
    from grass.profiles.allocation import allocate as allocate
    from grass.profiles.job_decorator import job as job
    from grass.verbs.calls import enqueue as enqueue
    from grass.verbs.calls import enqueue_array as enqueue_array
    from grass.verbs.calls import enqueue_array_async as enqueue_array_async
    from grass.verbs.calls import enqueue_async as enqueue_async
    from grass.verbs.calls import enqueue_many as enqueue_many
    from grass.verbs.calls import enqueue_many_async as enqueue_many_async
    from grass.verbs.calls import jobs as jobs
    from grass.verbs.calls import jobs_async as jobs_async
    from grass.verbs.cell_magic import (
        load_ipython_extension as load_ipython_extension,
    )
    from grass.verbs.job import Job as Job
    from grass.verbs.job_list import Jobs as Jobs

__version__ = "0.1.0"

_EXPORTED = {
    "Allocation": "grass.profiles.allocation",
    "allocate": "grass.profiles.allocation",
    "job": "grass.profiles.job_decorator",
    **dict.fromkeys(
        (
            *("enqueue", "enqueue_array", "enqueue_many", "jobs"),
            *("enqueue_async", "enqueue_array_async", "enqueue_many_async"),
            "jobs_async",
        ),
        "grass.verbs.calls",
    ),
    "load_ipython_extension": "grass.verbs.cell_magic",
    "Job": "grass.verbs.job",
    "Jobs": "grass.verbs.job_list",
}


def __getattr__(name: str) -> object:
    """Import what is exported when it is first asked for."""
    from importlib import import_module

    if name == "errors":
        return import_module("grass.errors")
    module = _EXPORTED.get(name)
    if module is None:
        raise AttributeError(f"module 'grass' has no attribute '{name}'")
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return what there is, with what is not imported yet."""
    return sorted({*globals(), *_EXPORTED})
