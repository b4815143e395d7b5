"""Modules beside the script, for an interpreter that has not the program's files.

What is named globally goes by value: functions and classes of such modules, and the
modules with all that they hold. What a body imports when it runs is not there then, so
the text of that module comes along (`children/carried_modules.py`), with those beside
the script that it imports itself.
"""

from __future__ import annotations

import dis
import os
import sys
import tokenize
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from importlib.machinery import PathFinder
from threading import RLock
from types import CodeType

import cloudpickle

from grass.tasks.children import payloads
from grass.tasks.children.carried_modules import WithModules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType
    from typing import Any, TypeVar

    from grass.tasks.children.carried_modules import Source

    T = TypeVar("T")

_PACKAGE = "/__init__.py"
_MOST_KEPT = 1024
_ELSEWHERE = sys.stdlib_module_names | {"grass", "__main__"}
"""Modules that every interpreter has which runs tasks."""
_registering = RLock()


@contextmanager
def with_neighbours() -> Iterator[None]:
    """Have all that is pickled in a block take what it needs of these modules along.

    A class that comes back by value is the same class here.
    """
    # The list of such modules is of the whole process.
    with _registering:
        known = cloudpickle.list_registry_pickle_by_value()
        ours = [one for one in neighbours() if one.__name__ not in known]
        for module in ours:
            cloudpickle.register_pickle_by_value(module)
        before, payloads.chosen.around = payloads.chosen.around, _dumped
        try:
            yield
        finally:
            payloads.chosen.around = before
            for module in ours:
                cloudpickle.unregister_pickle_by_value(module)


def neighbours() -> list[ModuleType]:
    """Return the modules and packages, without their parts, beside the script."""
    folder = script_folder()
    return [
        module
        for name, module in list(sys.modules.items())
        if "." not in name and name != "__main__" and folder in _folders_of(module)
    ]


def script_folder() -> str:
    """Return where the script is.

    In a notebook, at a prompt and with `python -m` it is the current directory.
    """
    main = sys.modules["__main__"]
    script: str | None = getattr(main, "__file__", None)
    if script is None or getattr(main, "__spec__", None) is not None:
        return os.path.realpath(os.getcwd())
    return os.path.realpath(os.path.dirname(script))


def _folders_of(module: ModuleType) -> set[str]:
    """Return the folders that a module or package lies in."""
    paths = list(getattr(module, "__path__", None) or ())
    if not paths:
        paths = [getattr(module, "__file__", None) or os.devnull]
    return {_folder_of(path) for path in paths}


@cache
def _folder_of(path: str) -> str:
    """Return where a file is; to look that up takes longer than most functions."""
    return os.path.realpath(os.path.dirname(path))


def _dumped(value: Any, dump: Callable[[Any, Callable[..., Any]], T]) -> T:  # noqa: ANN401
    """Pickle a value; again with modules, if functions in it import some."""
    codes: list[CodeType] = []
    data = dump(value, partial(_RecordingPickler, codes))
    sources = imported_sources(codes, script_folder()) if codes else {}
    if sources:
        data = dump(WithModules(value, sources), cloudpickle.Pickler)
    return data


class _RecordingPickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Tells which code it pickles by value."""

    def __init__(self, codes: list[CodeType], *args: Any, **more: Any) -> None:  # noqa: ANN401
        table = cloudpickle.Pickler.dispatch_table

        def reduce(code: CodeType) -> Any:  # noqa: ANN401
            codes.append(code)
            return table[CodeType](code)

        self.dispatch_table = table.new_child({CodeType: reduce})
        super().__init__(*args, **more)


def imported_sources(codes: Iterable[CodeType], folder: str) -> dict[str, Source]:
    """Return the modules of a folder that code imports, and that those import."""
    found: dict[str, Source] = {}
    left = [name for code in codes for name in _imports(code, folder)]
    while left:
        name = left.pop()
        if name in found or not _is_beside(name.partition(".")[0], folder):
            continue
        file = _file(name, folder)
        if file is not None:
            found[name] = *file, file[1].endswith(_PACKAGE)
            left += _imports_of_file(*file, folder)
    return found


def _imports(code: CodeType, folder: str) -> Iterator[str]:
    """Yield what code, and code inside of it, may import, with all packages above."""
    level: Any = None
    names: Any = None
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME":
            above = level if isinstance(level, int) else 0
            name = _absolute(str(one.argval or ""), above, code, folder)
            yield from _with_packages(name)
            for part in names if isinstance(names, tuple) else ():
                # It may be a module of that package.
                yield f"{name}.{part}"
        if one.opname != "EXTENDED_ARG":
            level, names = names, one.argval
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _imports(part, folder)


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[: end + 1]) for end in range(len(parts)))


def _absolute(name: str, level: int, code: CodeType, folder: str) -> str:
    """Return the full name of what code imports, also relative to its package."""
    if not level:
        return name
    place = os.path.relpath(os.path.realpath(code.co_filename), folder)
    packages = os.path.dirname(place).split(os.sep)
    packages = packages[: len(packages) + 1 - level]
    return ".".join([*packages, name] if name else packages)


def _is_beside(name: str, folder: str) -> bool:
    """Tell whether a module or package lies in a folder, and Python finds it there."""
    if not name.isidentifier() or name in _ELSEWHERE:
        return False
    path = os.path.join(folder, name)
    if not os.path.exists(f"{path}.py") and not os.path.isdir(path):
        return False
    known = sys.modules.get(name)
    if known is not None:
        return folder in _folders_of(known)
    spec = PathFinder.find_spec(name)
    if spec is None:
        return False
    places = spec.submodule_search_locations or [spec.origin or os.devnull]
    return folder in {_folder_of(one) for one in places}


def _file(name: str, folder: str) -> tuple[str, str] | None:
    """Return the text of a module and where it is; None: it has none."""
    path = os.path.join(folder, *name.split("."))
    for place in (f"{path}{_PACKAGE}", f"{path}.py"):
        try:
            found = os.stat(place)
            return _text(place, found.st_mtime_ns, found.st_size), place
        except (OSError, SyntaxError, UnicodeError):
            continue
    # A folder of modules without a file of its own is a package, too.
    return ("", f"{path}{_PACKAGE}") if os.path.isdir(path) else None


@lru_cache(_MOST_KEPT)
def _text(path: str, _changed_at: int, _size: int) -> str:
    with tokenize.open(path) as file:
        return file.read()


@lru_cache(_MOST_KEPT)
def _imports_of_file(text: str, path: str, folder: str) -> list[str]:
    try:
        code = compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        # It is told where it is imported.
        return []
    return list(_imports(code, folder))
