"""A daemon that is killed between a blob and the commit that names it."""

import hashlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from grass.client.client import Client
from grass.keeper import crash_points
from grass.verbs.calling import Caller
from grass.verbs.task_jobs import calls_of, enqueue_tasks, read_result
from tests.support.homes import GRASS, GrassHome
from tests.support.patience import PATIENCE_S, until

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]


def blobs(home: GrassHome) -> list[Path]:
    return [path for path in (home.folder / "blobs").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "point",
    [
        "broker.before-blob:2",
        "broker.after-blob:2",
        "broker.before-commit:4",
        "broker.after-commit:4",
    ],
)
def test_neither_half_is_left_and_the_call_goes_through(
    home: GrassHome, point: str
) -> None:
    """Of the function and of the arguments either can be the last that was kept."""
    with subprocess.Popen(
        [*GRASS, "daemon"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=home.desk,
        env={**home.environment, crash_points.VARIABLE: point},
    ) as doomed:
        place = home.client.home
        until(lambda: os.path.exists(place.socket), "no daemon")

        def size(data: bytes) -> int:
            return len(data)

        data = os.urandom(100_000)
        # A daemon is started in place of the one that is killed; the call is repeated.
        with Caller(place) as client:
            added = enqueue_tasks(client, calls_of(size, [((data,), {})]), {})
            assert (added["first"], added["last"]) == (1, 1)
            assert read_result(client, 1, PATIENCE_S) == len(data)
        if doomed.poll() is None:
            doomed.kill()
    assert doomed.returncode == -signal.SIGKILL
    with Client(place) as reader:
        assert [job["id"] for job in reader.jobs()] == [1]
        assert len(blobs(home)) == 2
        reader.remove(["1"])
        until(lambda: not blobs(home), "blobs are left")


def test_bytes_that_no_job_names_are_gone_after_a_restart(home: GrassHome) -> None:
    data = b"nobody names this"
    name = hashlib.sha256(data).hexdigest()
    with Client(home.client.home) as client:
        assert client.add_blob(name, [data])["added"]
        assert len(blobs(home)) == 1
        home.kill_daemon()
        assert client.missing_blobs([name])["missing"] in ([name], [])
        until(lambda: not blobs(home), "blobs are left")
