"""Fifty kills of daemon and keeper with fifty jobs in flight.

`make torture KILLS=5000` does the same for longer, and with full disks, failing forks
and restarts of the machine.
"""

import sys

import pytest

from tests.fault.torture import IN_FLIGHT
from tests.fault.torturing import broken, table, torture
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon

SEED = 4
DAEMON_KILLS, KEEPER_KILLS = 42, 8


@pytest.mark.timeout(300)
def test_jobs_run_exactly_once_whatever_is_killed(cold: GrassHome) -> None:
    result = torture(cold, SEED, (DAEMON_KILLS, KEEPER_KILLS))
    sys.stdout.write(f"seed {SEED}\n{table(result)}")
    assert not broken(result)
    assert result.done["daemon killed"] >= DAEMON_KILLS
    assert result.done["keeper killed"] >= KEEPER_KILLS
    assert result.jobs > DAEMON_KILLS
    assert result.most_alive <= IN_FLIGHT
