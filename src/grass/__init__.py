"""Grass: a job scheduler for people with a few GPUs and no cluster team.

For Python there are `job`, which decorates a function that needs a GPU, `allocate`,
which holds units while a block runs, and the verbs of the command line: `enqueue` and
`jobs`, and what can be done to these. Tasks are functions that ask for resources and
run side by side in one program, by `run_combine` and the names of Grain. All are
imported when they are first used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass import errors as errors
    from grass.profiles.allocation import Allocation as Allocation
    from grass.profiles.allocation import allocate as allocate
    from grass.profiles.job_decorator import job as job
    from grass.resource import CPU as CPU
    from grass.resource import ZERO as ZERO
    from grass.resource import Cores as Cores
    from grass.resource import Gpu as Gpu
    from grass.resource import Kind as Kind
    from grass.resource import Memory as Memory
    from grass.resource import Node as Node
    from grass.resource import Resource as Resource
    from grass.resource import Vram as Vram
    from grass.resource import WTime as WTime
    from grass.tasks.combine import run_combine as run_combine
    from grass.tasks.decorators import aretry as aretry
    from grass.tasks.decorators import subprocify as subprocify
    from grass.tasks.executor import Executor as Executor
    from grass.tasks.grain_executor import GrainExecutor as GrainExecutor
    from grass.tasks.variables import GVAR as GVAR
    from grass.tasks.wait_group import exec1 as exec1
    from grass.tasks.wait_group import load_cache_or_exec1 as load_cache_or_exec1
    from grass.tasks.wait_group import open_waitgroup as open_waitgroup
    from grass.verbs.cell_magic import (
        load_ipython_extension as load_ipython_extension,
    )
    from grass.verbs.enqueueing import enqueue as enqueue
    from grass.verbs.enqueueing import enqueue_array as enqueue_array
    from grass.verbs.enqueueing import enqueue_array_async as enqueue_array_async
    from grass.verbs.enqueueing import enqueue_async as enqueue_async
    from grass.verbs.enqueueing import enqueue_many as enqueue_many
    from grass.verbs.enqueueing import enqueue_many_async as enqueue_many_async
    from grass.verbs.enqueueing import jobs as jobs
    from grass.verbs.enqueueing import jobs_async as jobs_async
    from grass.verbs.enqueueing import map as map  # noqa: A004 -- as `grass.map`
    from grass.verbs.enqueueing import map_async as map_async
    from grass.verbs.job import Job as Job
    from grass.verbs.job_list import Jobs as Jobs

__version__ = "0.1.0"

_EXPORTED = {
    "Allocation": "grass.profiles.allocation",
    "CPU": "grass.resource",
    "Cores": "grass.resource",
    "Executor": "grass.tasks.executor",
    "GVAR": "grass.tasks.variables",
    "Gpu": "grass.resource",
    "GrainExecutor": "grass.tasks.grain_executor",
    "Kind": "grass.resource",
    "Memory": "grass.resource",
    "Node": "grass.resource",
    "Resource": "grass.resource",
    "Vram": "grass.resource",
    "WTime": "grass.resource",
    "ZERO": "grass.resource",
    "allocate": "grass.profiles.allocation",
    "aretry": "grass.tasks.decorators",
    "exec1": "grass.tasks.wait_group",
    "job": "grass.profiles.job_decorator",
    "load_cache_or_exec1": "grass.tasks.wait_group",
    "open_waitgroup": "grass.tasks.wait_group",
    "run_combine": "grass.tasks.combine",
    "subprocify": "grass.tasks.decorators",
    **dict.fromkeys(
        (
            *("enqueue", "enqueue_array", "enqueue_many", "jobs"),
            *("enqueue_async", "enqueue_array_async", "enqueue_many_async"),
            *("jobs_async", "map", "map_async"),
        ),
        "grass.verbs.enqueueing",
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
