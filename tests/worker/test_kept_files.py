"""Files that stay open between looks: what they tell, and that they are closed."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.worker.shell import kept_files
from grass.worker.shell.kept_files import LOOKS_KEPT, KeptFiles


@pytest.fixture
def files() -> Iterator[KeptFiles]:
    made = KeptFiles()
    yield made
    made.close()


def open_files(folder: Path) -> list[str]:
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    found = (os.readlink(link) for link in links if os.path.lexists(link))
    return sorted(path for path in found if path.startswith(str(folder)))


def test_a_file_is_read_anew_each_time_and_opened_once(
    files: KeptFiles, tmp_path: Path
) -> None:
    path = tmp_path / "one"
    for text in (b"first", b"second, longer", b"x" * 10_000, b""):
        path.write_bytes(text)
        assert files.read(str(path)) == text
        assert open_files(tmp_path) == [str(path)]


def test_a_process_that_has_ended_is_missing(files: KeptFiles) -> None:
    process = subprocess.Popen(["sleep", "1000"])
    stat = f"/proc/{process.pid}/stat"
    assert files.read(stat).startswith(b"%d (sleep)" % process.pid)
    process.kill()
    process.wait()
    with pytest.raises(OSError):
        files.read(stat)


def test_what_is_not_read_any_more_is_closed(files: KeptFiles, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    other.touch()
    files.read(str(one))
    for _ in range(2 * LOOKS_KEPT):
        files.read(str(other))
        files.look_done()
    assert open_files(tmp_path) == [str(other)]
    files.close()
    assert open_files(tmp_path) == []


def test_only_so_many_are_kept(
    files: KeptFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "MOST_KEPT", 2)
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
        assert files.read(str(tmp_path / name)) == name.encode()
    assert len(open_files(tmp_path)) == 2
