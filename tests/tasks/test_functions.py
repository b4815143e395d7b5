"""Functions as bytes: modules beside the script, here and where there are no files."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest

import grass
from grass.errors import UsageError
from grass.tasks.functions import MOST, Functions
from grass.tasks.neighbours import neighbours, with_neighbours
from grass.tasks.session import session_for
from grass.tasks.task import Options, Task

SOURCE = str(Path(grass.__file__).parents[1])
SHAPES = """
from dataclasses import dataclass

from tools import scaled

UNIT = 10


@dataclass
class Point:
    x: int


def moved(point):
    return Point(scaled(point.x) + UNIT)
"""
TOOLS = {"tools/__init__.py": "from .parts import scaled\n"}
TOOLS["tools/parts.py"] = "FACTOR = 2\n\n\ndef scaled(x):\n    return FACTOR * x\n"
SCRIPT = """
import sys
import grass as grain
import shapes
from shapes import Point, moved


def globally(x):
    return moved(Point(x))


def inside(x):
    import shapes
    from tools.parts import scaled
    return shapes.Point(scaled(x) + shapes.UNIT)


def by_module(x):
    return shapes.moved(shapes.Point(x))


async def main():
    async with grain.open_waitgroup() as wg:
        for function in (globally, inside, by_module):
            wg.submit(grain.Cores(1), function, 1)
        wg.submit(grain.Cores(1), moved, Point(1))
    assert all(type(one) is Point for one in wg.results), wg.results
    print(*(one.x for one in wg.results))


if __name__ == "__main__":
    grain.run_combine(main, [], grain.Cores(1), backend=sys.argv[1])
"""
ELSEWHERE = """
import pickle, sys

for line in sys.stdin:
    function = pickle.loads(bytes.fromhex(line))
    try:
        print(function(1).x)
    except ModuleNotFoundError as error:
        print(error)
"""
PICKLED = """
import cloudpickle
from grass.tasks.functions import pickled
from grass.tasks.neighbours import with_neighbours

with with_neighbours():
    for function in (globally, by_module, inside):
        print(pickled(function).hex())
point = cloudpickle.loads(cloudpickle.dumps(Point(1)))
assert type(point) is Point
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A script with a module and a package beside it."""
    folder = tmp_path / "program"
    for name, text in {"shapes.py": SHAPES, "script.py": SCRIPT, **TOOLS}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def run(*words: object, text: str | None = None) -> str:
    """Run Python far from the script, and return what it prints."""
    ran = subprocess.run(
        [sys.executable, *map(str, words)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_children_find_what_is_beside_the_script(folder: Path, backend: str) -> None:
    # In Grain such a name is not found unless it is imported inside of the function.
    assert run(folder / "script.py", backend) == "12 12 12 12\n"


def test_an_interpreter_without_the_files_gets_them_by_value(folder: Path) -> None:
    script = folder / "pickled.py"
    script.write_text(SCRIPT.partition("if __name__")[0] + PICKLED)
    values = run("-c", ELSEWHERE, text=run(script)).splitlines()
    assert values == ["12", "12", "12"]


def test_few_functions_are_kept_and_no_large_ones(backend: str) -> None:
    large = bytes(1 << 17)

    async def main() -> Any:
        async with grass.open_waitgroup() as wg:
            wg.submit(grass.Cores(1), lambda: len(large))
            for number in range(MOST + 50):
                wg.submit(grass.Cores(1), lambda one=number: one)
            wg.submit(grass.Cores(1), partial(max, 3), 4)
        session = session_for("this test")
        return wg.results, session._children._functions.data

    found, kept = grass.run_combine(main, [], grass.Cores(1), backend=backend)
    assert found == [1 << 17, *range(MOST + 50), 4]
    assert len(kept) == MOST
    assert max(map(len, kept)) < 1 << 16


def test_what_goes_with_its_calls_and_cannot_be_sent_is_named() -> None:
    functions, lock = Functions(), Lock()
    functions.data = [b""] * MOST
    owner: Any = SimpleNamespace(snapshot={})
    with pytest.raises(UsageError, match=r"`.*lambda.*` cannot be sent to another"):
        functions.call(Task(owner, Options(), lambda: lock, (), {}))
    with pytest.raises(UsageError, match="argument 1 of `len`, a lock, cannot be"):
        functions.call(Task(owner, Options(), len, (lock,), {}))


def test_what_is_installed_is_no_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    names = {module.__name__ for module in neighbours()}
    assert "tests" in names
    assert names.isdisjoint({"grass", "cloudpickle", "os", "__main__"})


def test_a_module_that_the_program_has_named_stays_by_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import tests

    monkeypatch.chdir(Path(__file__).parents[2])
    cloudpickle.register_pickle_by_value(tests)
    try:
        with with_neighbours():
            assert "tests" in cloudpickle.list_registry_pickle_by_value()
        assert "tests" in cloudpickle.list_registry_pickle_by_value()
    finally:
        cloudpickle.unregister_pickle_by_value(tests)
    with with_neighbours():
        assert "tests" in cloudpickle.list_registry_pickle_by_value()
    assert "tests" not in cloudpickle.list_registry_pickle_by_value()
