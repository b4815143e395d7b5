"""A script with `#SBATCH` lines: the facts from which its job gets Slurm's variables.

A job has them only if its script has such lines. They are kept with the spec, because
members of an array share them and may start long after the call.
"""

import msgspec
from msgspec.structs import replace

from grass.errors import UsageError
from grass.model.jobs.arrays import Array

MAX_OPTIONS = 100
_LONGEST = 4096


class TaskRange(msgspec.Struct, frozen=True):
    """The indices of an array, as `SLURM_ARRAY_TASK_COUNT` and the like give them."""

    count: int
    first: int
    last: int
    step: int


class SbatchScript(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a script with `#SBATCH` lines was submitted."""

    options: tuple[str, ...] = ()
    """The long names of its options: Slurm sets some variables only for these."""
    directory: str = ""
    """Where it was submitted."""
    host: str = ""
    """The machine on which it was submitted."""
    tasks: TaskRange | None = None
    """The indices of its array; None: it is none."""

    def of_array(self, array: Array) -> "SbatchScript":
        """Return the same for the members of an array."""
        first, last = min(array.indices), max(array.indices)
        tasks = TaskRange(len(array.indices), first, last, array.step)
        return replace(self, tasks=tasks)


class SbatchForm(msgspec.Struct, forbid_unknown_fields=True):
    """The same as a request gives it; the array is a field of its own there."""

    options: list[str] = []
    directory: str = ""
    host: str = ""


def read_sbatch(form: SbatchForm | None) -> SbatchScript | None:
    """Read the `#SBATCH` lines of a request."""
    if form is None:
        return None
    texts = (*form.options, form.directory, form.host)
    if len(form.options) > MAX_OPTIONS or any(len(one) > _LONGEST for one in texts):
        raise UsageError("these are more #SBATCH options than a script can have")
    if any("\0" in one for one in texts):
        raise UsageError("#SBATCH options cannot hold a NUL byte")
    return SbatchScript(tuple(form.options), form.directory, form.host)
