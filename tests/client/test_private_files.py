"""Small files of the state directory: written by several processes, on a full disk."""

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from grass.client.credentials import Credentials, JoinedBroker
from grass.client.private_files import create_private, replace_private
from grass.config import Home
from grass.daemon.hosting import save_options
from grass.daemon.worker_setup import worker_id
from grass.errors import GrassError
from grass.model.addresses import Address

BROKER = JoinedBroker(
    "p", "m.secret", "machine", "m", (Address("h", 7500),), "c", "2026"
)


@contextlib.contextmanager
def no_room() -> Iterator[None]:
    """Let no file grow beyond a few bytes, as a disk that fills up does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


WRITERS: list[Callable[[Home], object]] = [
    lambda home: Credentials.load(home).add(BROKER),
    worker_id,
]


@pytest.mark.parametrize("write", WRITERS, ids=["credentials", "worker-id"])
def test_a_file_that_there_is_no_room_for_leaves_nothing_behind(
    tmp_path: Path, write: Callable[[Home], object]
) -> None:
    home = Home(str(tmp_path))
    with no_room(), pytest.raises(GrassError, match="cannot be written: File too"):
        write(home)
    assert set(os.listdir(tmp_path)) <= {"brokers.lock"}


def test_what_was_remembered_before_stays(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    save_options(home, ["--bind=0.0.0.0:7500"])
    with no_room():
        save_options(home, ["--bind=0.0.0.0:7501"])
    assert Path(home.options).read_text() == '["--bind=0.0.0.0:7500"]'
    assert os.listdir(tmp_path) == [os.path.basename(home.options)]


def identity(folder: str) -> str:
    return worker_id(Home(folder))


def test_of_many_who_make_an_identity_the_first_decides(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        for number in range(30):
            folder = tmp_path / str(number)
            (folder / "keeper").mkdir(parents=True)
            told = set(pool.map(identity, [str(folder)] * 4))
            assert told == {(folder / "worker-id").read_text().strip()}
            assert sorted(os.listdir(folder)) == ["keeper", "worker-id"]


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
