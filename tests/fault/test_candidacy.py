"""A daemon that cannot ask for the lead any more does not go on as if it led."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S
from tests.support.processes import until_ready

pytestmark = pytest.mark.daemon

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("method", ["step", "_take"])
def test_a_leader_that_fails_to_renew_by_a_defect_stops_and_logs_it(
    cold: GrassHome, database: str, method: str
) -> None:
    words = ["-m", "tests.fault.faulty_candidacy", str(cold.folder), database, method]
    daemon = subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=cold.environment,
        text=True,
    )
    try:
        until_ready(daemon)
        (cold.folder / "fault").touch()
        _, printed = daemon.communicate(timeout=PATIENCE_S)
    finally:
        daemon.kill()
    assert daemon.returncode == 1
    assert "RuntimeError: planted" in printed
    assert not (cold.folder / "grass.sock").exists()
    # The lead was given up: the next daemon does not wait for the end of a term.
    (cold.folder / "fault").unlink()
    cold.ok("start", "--no-worker", "--store", database)
    assert cold.enqueue("--hold", "--", "true") == 1
