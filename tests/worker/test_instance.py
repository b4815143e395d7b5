"""A home is told from copies of it."""

import shutil
from pathlib import Path

import pytest

from grass.errors import GrassError
from grass.worker.shell.instance import instance_of


def test_a_home_keeps_its_name(tmp_path: Path) -> None:
    made = instance_of(str(tmp_path))
    assert instance_of(str(tmp_path)) == made
    moved = tmp_path.rename(tmp_path.with_name("moved"))
    assert instance_of(str(moved)) == made


def test_a_copy_has_another_name(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    made = instance_of(str(first))
    shutil.copytree(first, second)
    copied = instance_of(str(second))
    assert copied != made
    assert (instance_of(str(first)), instance_of(str(second))) == (made, copied)


def test_an_empty_file_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "instance").touch()
    assert len(instance_of(str(tmp_path))) == 16


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "instance"
    for content in (b"x", b"x y", b"\xff\xfe 7"):
        path.write_bytes(content)
        with pytest.raises(GrassError, match="instance is damaged"):
            instance_of(str(tmp_path))
        assert path.read_bytes() == content
