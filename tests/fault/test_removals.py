"""Output of forgotten jobs is removed, whenever the daemon is killed."""

import signal
import subprocess
from pathlib import Path

import pytest

from grass.keeper import crash_points
from tests.support.homes import GRASS, GrassHome
from tests.support.patience import PATIENCE_S, until

pytestmark = pytest.mark.daemon

JOBS = 5


def output_files(home: GrassHome) -> list[Path]:
    return [path for path in (home.folder / "output").rglob("*") if path.is_file()]


def output_bytes(home: GrassHome) -> int:
    return int(home.client.overview()["daemon"]["output_bytes"])


def test_a_daemon_killed_while_it_removes_output_goes_on_after_its_start(
    cold: GrassHome,
) -> None:
    doomed = subprocess.Popen(
        [*GRASS, "daemon"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=cold.desk,
        env={**cold.environment, crash_points.VARIABLE: "worker.before-remove:3"},
    )
    until(cold.daemon_pid, "the daemon did not start")
    jobs = [cold.enqueue("--", "echo", "text") for _ in range(JOBS)]
    cold.wait(*jobs)
    assert len(output_files(cold)) == JOBS
    # The daemon may be killed before its answer is on its way.
    cold.run("prune", "--older", "0s", "--yes")
    assert doomed.wait(PATIENCE_S) == -signal.SIGKILL
    assert len(output_files(cold)) == JOBS - 2
    cold.ok("start")
    until(lambda: output_bytes(cold), "output is left", lambda left: left == 0)
    assert output_files(cold) == []
    rows = lambda: cold.rows("SELECT id FROM removals")  # noqa: E731
    until(rows, "the store keeps what is removed", lambda left: not left)
