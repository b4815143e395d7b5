"""A hundred kills of daemon and keeper with fifty jobs in flight; also while short.

`make torture KILLS=5000` does the same for longer.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fault.torture import IN_FLIGHT, SHORT, Pace
from tests.fault.torturing import DISK_BYTES, Besides, broken, table, torture
from tests.support.homes import GrassHome
from tests.support.shortage import small_disk

pytestmark = pytest.mark.daemon

SEED = 4
DAEMON_KILLS, KEEPER_KILLS = 85, 15
RESTARTS = 6
BRISK = Pace(0.5, 1.5, 1.0)
SHORTAGES = 5


@pytest.mark.timeout(300)
def test_jobs_run_exactly_once_whatever_is_killed(cold: GrassHome) -> None:
    result = torture(cold, SEED, (DAEMON_KILLS, KEEPER_KILLS))
    sys.stdout.write(f"seed {SEED}\n{table(result)}")
    assert not broken(result)
    assert result.done["daemon killed"] >= DAEMON_KILLS
    assert result.done["keeper killed"] >= KEEPER_KILLS
    assert result.jobs > DAEMON_KILLS
    assert result.most_alive <= IN_FLIGHT


@pytest.mark.timeout(300)
def test_what_had_ended_is_known_after_restarts_of_the_machine(cold: GrassHome) -> None:
    result = torture(cold, SEED, (0, 0), pace=BRISK, besides=Besides(restarts=RESTARTS))
    sys.stdout.write(f"seed {SEED}\n{table(result)}")
    assert not broken(result)
    assert result.done["machine restarted"] == RESTARTS
    assert result.told_by_keeper > 0
    assert result.verdict.called_lost


@pytest.mark.timeout(300)
def test_no_job_fails_or_is_lost_by_a_full_disk_or_failing_forks(
    tmp_path: Path,
) -> None:
    with ExitStack() as ends:
        disk = ends.enter_context(small_disk(tmp_path / "disk", DISK_BYTES))
        home = GrassHome(tmp_path, disk / "home")
        ends.callback(home.end)
        kills = (SHORTAGES, SHORTAGES)
        besides = Besides(shortages=SHORTAGES, disk=disk)
        result = torture(home, SEED, kills, pace=SHORT, besides=besides)
    sys.stdout.write(f"seed {SEED}\n{table(result)}")
    assert not broken(result)
    assert result.done["short of disk"] == result.done["short of forks"] == SHORTAGES
