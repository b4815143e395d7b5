"""`docs/reference/python.md`, made from the docstrings of what programs call.

`python -m grass.verbs.reference > docs/reference/python.md` writes it; a test compares.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from grass.cli.parsing.job_changes import CHANGES_BEFORE_START
from grass.docstrings import about, methods, section
from grass.verbs import enqueueing
from grass.verbs.cell_magic import run_cell
from grass.verbs.job import Field, Job
from grass.verbs.job_list import Jobs
from grass.verbs.keywords import (
    ArrayOptions,
    ChangesBeforeStart,
    JobChanges,
    JobOptions,
)
from grass.verbs.selected import Selected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from grass.cli.parsing.options import Option

FUNCTIONS = (
    *(
        enqueueing.enqueue,
        enqueueing.map,
        enqueueing.enqueue_array,
        enqueueing.enqueue_many,
    ),
    enqueueing.jobs,
)
_OPENING = """# Python

What `import grass` gives to enqueue jobs and to steer them;
[how to use it](../how-to/python-jobs.md). Every function and method here has a form for
coroutines whose name ends in `_async`, and which takes and gives the same:
`await grass.enqueue_async(...)`, `await job.wait_async()`,
`async for line in job.logs_async()`. Errors are those of `grass.errors`, with the
[codes and exit codes](exit-codes.md) of the command line.
"""
_VERBS = """## Verbs

One job and several have these. A verb on a `Job` returns it, and is refused if it does
not fit; one on `Jobs` returns those that it was done to, and leaves the others alone.
"""
_KEYWORDS = """## Keywords

They are the options of `grass enqueue`. A switch is True or False. A duration is a
number of seconds, a text as `"2h"` or a `timedelta`; a time a text or a `datetime`; an
amount a number or a text as `"8G"`. What has commas on the command line may be a list,
`env` and `request` a dictionary, and `after` a job. None is as if it were not given.
"""
_CHANGES = """`rerun` and `edit` change these, and `edit` the last three, too. None
takes something away, as `none` does on the command line.
"""


def text() -> str:
    """Return the whole page."""
    parts = [_OPENING]
    parts += [section(f"grass.{one.__name__}", one, "##") for one in FUNCTIONS]
    given = (JobOptions, ArrayOptions), enqueueing.ARRAY_OPTIONS
    parts += [_KEYWORDS, _table(*given)]
    parts += [_class(Job), _class(Jobs), _VERBS, *_methods(Selected, "job")]
    changes = (JobChanges, ChangesBeforeStart), CHANGES_BEFORE_START
    parts += [_CHANGES, _table(*changes), f"## %%grass\n\n{about(run_cell)}\n"]
    return "\n".join(parts)


def _class(kind: type[Selected]) -> str:
    """Return what is known of a class, then its own methods."""
    lines = [f"## {kind.__name__}", "", about(kind), "", "| attribute | meaning |"]
    lines += ["|---|---|", *_attributes(kind), ""]
    return "\n".join([*lines, *_methods(kind, kind.__name__.lower())])


def _attributes(kind: type[Selected]) -> Iterable[str]:
    if kind is Job:
        yield "| `id` | Its number, which no other job ever has. |"
    for name, member in vars(kind).items():
        if isinstance(member, Field | property) and not name.startswith("_"):
            yield f"| `{name}` | {about(member)} |"


def _table(forms: Sequence[type], options: Sequence[Option]) -> str:
    told = {one.key: one.about.replace("|", "\\|") for one in options}
    told |= {"request": told["require"], "require": "the same as `request`"}
    names = dict.fromkeys(name for form in forms for name in form.__annotations__)
    rows = (f"| `{name}` | {told[name]} |" for name in names)
    return "\n".join(["| keyword | meaning |", "|---|---|", *rows, ""])


def _methods(kind: type, instance: str) -> Iterable[str]:
    return methods(kind, instance, lambda name: not name.endswith("_async"))


if __name__ == "__main__":
    sys.stdout.write(text())
