"""Modules that only the body of a function imports go along with it, as text."""

import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grass
from grass.tasks.children.carried_modules import CarriedModules, came, carried
from grass.tasks.neighbours import imported_sources
from tests.support.fixtures import lasting, shared
from tests.support.homes import GrassHome

__all__ = ["lasting", "shared"]

FILES = {
    "one.py": "import two\nfrom pack.deep import part\nVALUE = two.VALUE\n",
    "two.py": "VALUE = 1\ndef late():\n    import three\n    return three.VALUE\n",
    "three.py": "VALUE = 3\n",
    "unused.py": "raise SystemExit\n",
    "pack/__init__.py": "",
    "pack/deep/__init__.py": "from .. import top\n",
    "pack/deep/part.py": "from .more import VALUE\n",
    "pack/deep/more.py": "from . import __name__ as here\nVALUE = 20\n",
    "pack/top.py": "",
    "pack/aside.py": "",
    "loose/member.py": "VALUE = 7\n",
    "json.py": "VALUE = 'a name of the standard library'\n",
    "broken.py": "def (:\n",
    "lib.so": "no text",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return str(tmp_path)


def code_of(text: str) -> Any:
    return compile(text, "<a cell>", "exec")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import os, json, grass, numpy", []),
        ("import three", ["three"]),
        ("def f():\n    def g():\n        import three", ["three"]),
        ("class A:\n    def f(self):\n        from three import VALUE", ["three"]),
        ("from two import late", ["three", "two"]),
        ("from loose import member", ["loose", "loose.member"]),
        ("import pack.aside", ["pack", "pack.aside"]),
        ("import broken, lib, missing", ["broken"]),
        (
            "import one",
            [
                *("one", "pack", "pack.deep", "pack.deep.more", "pack.deep.part"),
                *("pack.top", "three", "two"),
            ],
        ),
    ],
)
def test_what_is_imported_is_found_with_what_that_imports(
    folder: str, text: str, names: list[str]
) -> None:
    found = imported_sources([code_of(text)], folder)
    assert sorted(found) == names
    packages = {"pack", "pack.deep", "loose"}
    assert {name for name in found if found[name][2]} == packages & set(names)


def test_what_python_would_find_elsewhere_is_not_taken(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one != folder])
    assert not imported_sources([code_of("import three")], folder)


@pytest.fixture
def modules() -> Iterator[CarriedModules]:
    yield carried
    carried.use({})
    came.clear()
    if carried in sys.meta_path:
        sys.meta_path.remove(carried)


def test_another_text_is_another_module_and_the_same_one_stays(
    modules: CarriedModules,
) -> None:
    first = {
        "grass_try_a": ("VALUE = 1\n", "/there/grass_try_a.py", False),
        "grass_try_b": ("from grass_try_a import VALUE\n", "/there/b.py", False),
    }
    modules.use(first)
    import grass_try_b as before  # type: ignore[import-not-found]

    modules.use(dict(first))
    import grass_try_b as same

    assert (before.VALUE, same is before) == (1, True)
    second = {**first, "grass_try_a": ("VALUE = 2\n", "/there/grass_try_a.py", False)}
    modules.add(second)
    import grass_try_b as after

    assert after.VALUE == 2
    modules.use({})
    with pytest.raises(ModuleNotFoundError):
        import grass_try_a  # type: ignore[import-not-found]  # noqa: F401


def test_a_traceback_shows_the_lines_of_such_a_module(modules: CarriedModules) -> None:
    text = "def fails():\n    raise ValueError('there')\n"
    modules.use({"grass_try_a": (text, "/there/grass_try_a.py", False)})
    import grass_try_a

    with pytest.raises(ValueError, match="there") as raised:
        grass_try_a.fails()
    shown = "".join(traceback.format_exception(raised.value))
    assert 'File "/there/grass_try_a.py", line 2, in fails' in shown
    assert "raise ValueError('there')" in shown


SCRIPT = """
import sys
import grass


def lazily(x):
    import shapes
    return shapes.Point(shapes.FACTOR * x)


def calls(function, x):
    return function(x)


job = grass.enqueue(lazily, 2, cwd="/")
again = grass.enqueue(calls, lazily, 2, cwd="/")
found = [one.result(timeout=60) for one in (job, again)]
import shapes
assert all(type(one) is shapes.Point for one in found)
print(*(one.x for one in found))
"""
SHAPES = """
from dataclasses import dataclass
FACTOR = {factor}
@dataclass
class Point:
    x: int
"""


@pytest.mark.daemon
def test_a_warm_runner_far_from_the_script_has_them_as_they_were(
    shared: GrassHome, tmp_path: Path
) -> None:
    folder = tmp_path / "my program"
    folder.mkdir()
    (folder / "script.py").write_text(SCRIPT)
    for factor in (3, 5):
        (folder / "shapes.py").write_text(SHAPES.format(factor=factor))
        ran = subprocess.run(
            [sys.executable, "-B", folder / "script.py"],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env={
                **shared.environment,
                "PYTHONPATH": str(Path(grass.__file__).parents[1]),
            },
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == f"{2 * factor} {2 * factor}\n"
