"""Twenty kills of daemon and keeper with fifty jobs in flight, and some restarts.

`make torture KILLS=5000` does the same for longer, and with full disks and failing
forks.
"""

import sys

import pytest

from tests.fault.torture import IN_FLIGHT, Timing
from tests.fault.torturing import Besides, broken, table, torture
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon

SEED = 4
DAEMON_KILLS, KEEPER_KILLS = 16, 4
BRISK = Timing(0.3, 0.8, 1.0)
RESTARTS = Besides(restarts=1, unseen_restarts=1)


@pytest.mark.timeout(300)
def test_jobs_run_exactly_once_whatever_is_killed(cold: GrassHome) -> None:
    result = torture(cold, SEED, (DAEMON_KILLS, KEEPER_KILLS))
    sys.stdout.write(f"seed {SEED}\n{table(result)}")
    assert not broken(result)
    assert result.done["daemon killed"] >= DAEMON_KILLS
    assert result.done["keeper killed"] >= KEEPER_KILLS
    assert result.jobs > DAEMON_KILLS
    assert result.most_alive <= IN_FLIGHT


@pytest.mark.timeout(120)
def test_what_had_ended_is_known_after_restarts_of_the_machine(cold: GrassHome) -> None:
    result = torture(cold, SEED, (0, 0), timing=BRISK, besides=RESTARTS)
    sys.stdout.write(f"seed {SEED}\n{table(result)}")
    assert not broken(result)
    assert result.done["machine restarted"] == 2
    assert result.told_by_keeper > 0
