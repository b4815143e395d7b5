"""Grass: a job scheduler for people with a few GPUs and no cluster team.

For Python there are `job`, which decorates a function that needs a GPU, and `allocate`,
which holds units while a block runs. They are imported when they are first used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from grass.profiles.allocation import Allocation as Allocation
    from grass.profiles.allocation import allocate as allocate
    from grass.profiles.job_decorator import job as job

__version__ = "0.1.0"

_EXPORTED = {
    "Allocation": "grass.profiles.allocation",
    "allocate": "grass.profiles.allocation",
    "job": "grass.profiles.job_decorator",
}


def __getattr__(name: str) -> object:
    """Import what is exported when it is first asked for."""
    module = _EXPORTED.get(name)
    if module is None:
        raise AttributeError(f"module 'grass' has no attribute '{name}'")
    from importlib import import_module

    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return what there is, with what is not imported yet."""
    return sorted({*globals(), *_EXPORTED})
