"""The architecture page names what exists: every folder, and no module that is gone."""

import re
from pathlib import Path

import pytest

from .pages import ROOT

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PACKAGE = ROOT / "src" / "grass"
_MODULE = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|sql))`")
_FOLDER = re.compile(r"`([\w/]+/)`")


@pytest.mark.parametrize("page", [PAGE, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_every_module_that_is_named_exists(page: Path) -> None:
    named = set(_MODULE.findall(page.read_text())) - {"src/grass/cli/commands/NAME.py"}
    assert named
    assert sorted(name for name in named if not _exists(name)) == []


def test_every_room_is_in_the_table() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    for package in _packages(PACKAGE):
        (row,) = [row for row in rows if row.startswith(f"| `{package.name}/`")]
        rooms = {f"{room.name}/" for room in package.rglob("*") if _is_package(room)}
        assert set(_FOLDER.findall(row)) == {f"{package.name}/", *rooms}


def _exists(name: str) -> bool:
    if "/" not in name:
        return any(PACKAGE.rglob(name))
    return any((base / name).exists() for base in (PACKAGE, ROOT))


def _packages(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if _is_package(entry)]


def _is_package(entry: Path) -> bool:
    return (entry / "__init__.py").exists()
