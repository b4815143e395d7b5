"""Small private files that several may write at once."""

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from grass.client.private_files import create_private, replace_private
from grass.config import Home
from grass.daemon.worker_setup import worker_id


def identity(folder: str) -> str:
    return worker_id(Home(folder))


def test_of_many_who_make_an_identity_the_first_decides(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        for number in range(30):
            folder = tmp_path / str(number)
            folder.mkdir()
            told = set(pool.map(identity, [str(folder)] * 4))
            assert told == {(folder / "worker-id").read_text().strip()}
            assert os.listdir(folder) == ["worker-id"]


def test_a_file_is_made_once_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "one"
    create_private(str(path), "first")
    create_private(str(path), "second")
    assert path.read_text() == "first"
    replace_private(str(path), "third")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("third", 0o600)
    path.write_text("")
    create_private(str(path), "fourth")
    assert path.read_text() == "fourth"
    assert os.listdir(tmp_path) == ["one"]
