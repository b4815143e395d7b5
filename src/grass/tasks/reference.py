"""`docs/reference/python-tasks.md`, made from the docstrings of what programs call.

`python -m grass.tasks.reference > docs/reference/python-tasks.md` writes it; a test
compares.
"""

from __future__ import annotations

import sys

from grass import resource
from grass.docstrings import about, methods, section
from grass.tasks import combine, decorators, wait_group
from grass.tasks.executor import Executor
from grass.tasks.grain_executor import GrainExecutor
from grass.tasks.variables import TaskVariables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_OPENING = """# Python: tasks

What `import grass` gives to run functions with resources in one program;
[how to use it](../how-to/tasks.md). The names of Grain mean what they mean there:
[coming from Grain](../how-to/coming-from-grain.md).
"""
_RESOURCES = """## Resources

`&` combines them, `>=` asks whether one can afford another.
"""
_OF_OWNERS = ("begin", "succeeded", "failed", "raised")
"""What a session calls, and programs do not."""
FUNCTIONS = (
    combine.run_combine,
    wait_group.open_waitgroup,
    wait_group.exec1,
    wait_group.load_cache_or_exec1,
    decorators.subprocify,
    decorators.aretry,
)
RESOURCES = (
    *(resource.Cores, resource.Memory, resource.Node, resource.Gpu, resource.Vram),
    *(resource.Kind, resource.WTime),
)


def text() -> str:
    """Return the whole page."""
    parts = [_OPENING]
    parts += [section(f"grass.{one.__name__}", one, "##") for one in FUNCTIONS]
    parts += [f"## WaitGroup\n\n{about(wait_group.WaitGroup)}\n"]
    parts += _methods(wait_group.Submitting, "wg")
    parts += [section("wg.options", wait_group.WaitGroup.options, "###")]
    parts += _whole(GrainExecutor, "executor")
    parts += _whole(Executor, "executor")
    parts += ["## GVAR\n", *_properties(TaskVariables), _RESOURCES]
    parts += [section(f"grass.{one.__name__}", one, "###") for one in RESOURCES]
    parts += [section("grass.Resource", resource.Resource, "###")]
    parts += _rules(resource.Resource)
    return "\n".join(parts)


def _whole(kind: type, called: str) -> list[str]:
    """Return what is known of a class, then its own methods."""
    return [section(f"grass.{kind.__name__}", kind, "##"), *_methods(kind, called)]


def _properties(kind: type) -> Iterable[str]:
    for name, member in vars(kind).items():
        if isinstance(member, property):
            yield f"- `GVAR.{name}`: {about(member)}"
    yield ""


def _rules(kind: type) -> Iterable[str]:
    """Return the methods that a class of the user's own has to have."""
    yield "A class of your own has these methods:\n"
    for name in ("_request", "_alloc", "_dealloc"):
        yield f"- `{name}(self, res)`: {about(vars(kind)[name])}"
    yield "- `_repr(self)`: Return how it is written.\n"


def _methods(kind: type, instance: str) -> Iterable[str]:
    return methods(kind, instance, lambda name: name not in _OF_OWNERS)


if __name__ == "__main__":
    sys.stdout.write(text())
