"""`docs/reference/python-tasks.md`, made from the docstrings of what programs call.

`python -m grass.tasks.reference > docs/reference/python-tasks.md` writes it; a test
compares.
"""

from __future__ import annotations

import inspect
import sys

from grass import resource
from grass.tasks import combine, decorators, wait_group
from grass.tasks.executor import Executor
from grass.tasks.grain_executor import GrainExecutor
from grass.tasks.variables import TaskVariables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_OPENING = """# Python: tasks

What `import grass` gives to run functions with resources in one program;
[how to use it](../how-to/tasks.md). The names of Grain mean what they mean there:
[coming from Grain](../how-to/coming-from-grain.md).
"""
_RESOURCES = """## Resources

`&` combines them, `>=` asks whether one can afford another.
"""
_OF_OWNERS = ("begin", "succeeded", "failed")
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
    parts += [_called(f"grass.{one.__name__}", one, "##") for one in FUNCTIONS]
    parts += [f"## WaitGroup\n\n{_about(wait_group.WaitGroup)}\n"]
    parts += _methods(wait_group.Submitting, "wg")
    parts += [_called("wg.options", wait_group.WaitGroup.options, "###")]
    parts += _whole(GrainExecutor, "executor")
    parts += _whole(Executor, "executor")
    parts += ["## GVAR\n", *_properties(TaskVariables), _RESOURCES]
    parts += [_called(f"grass.{one.__name__}", one, "###") for one in RESOURCES]
    parts += [_called("grass.Resource", resource.Resource, "###")]
    parts += _rules(resource.Resource)
    return "\n".join(parts)


def _whole(kind: type, called: str) -> list[str]:
    """Return what is known of a class, then its own methods."""
    return [_called(f"grass.{kind.__name__}", kind, "##"), *_methods(kind, called)]


def _methods(kind: type, called: str) -> Iterable[str]:
    for name, member in vars(kind).items():
        is_called = inspect.isfunction(member) and not name.startswith("_")
        if is_called and name not in _OF_OWNERS:
            yield _called(f"{called}.{name}", member, "###")


def _properties(kind: type) -> Iterable[str]:
    for name, member in vars(kind).items():
        if isinstance(member, property):
            yield f"- `GVAR.{name}`: {_about(member)}"
    yield ""


def _rules(kind: type) -> Iterable[str]:
    """Return the methods that a class of the user's own has to have."""
    yield "A class of your own has these methods:\n"
    for name in ("_request", "_alloc", "_dealloc"):
        yield f"- `{name}(self, res)`: {_about(vars(kind)[name])}"
    yield "- `_repr(self)`: Return how it is written.\n"


def _called(name: str, called: Callable[..., object], heading: str) -> str:
    words = str(inspect.signature(called)).replace("'", "")
    words = words.replace("(self, ", "(").replace("(self)", "()")
    words = words.replace("<class Exception>", "Exception")
    return f"{heading} {name}\n\n```python\n{name}{words}\n```\n\n{_about(called)}\n"


def _about(documented: object) -> str:
    return inspect.getdoc(documented) or ""


if __name__ == "__main__":
    sys.stdout.write(text())
