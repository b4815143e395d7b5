"""Small files of the state directory, where there is no room for them."""

import contextlib
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grass.client.credentials import Credentials, Known
from grass.config import Home
from grass.daemon.hosting import save_options
from grass.daemon.worker_setup import worker_id
from grass.errors import GrassError
from grass.model.addresses import Address

BROKER = Known("p", "m.secret", "machine", "m", (Address("h", 7500),), "c", "2026")


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
