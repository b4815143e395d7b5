"""A home is told from copies of it."""

import shutil
from pathlib import Path

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


def test_a_file_that_says_nothing_is_made_anew(tmp_path: Path) -> None:
    for text in ("", "x", "x y"):
        (tmp_path / "instance").write_text(text)
        assert len(instance_of(str(tmp_path))) == 16
