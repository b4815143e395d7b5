"""A verb on thousands of jobs whose daemon is killed in the middle of it."""

import pytest

from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S, until

pytestmark = pytest.mark.daemon

JOBS = 3000
CANCELLED = "SELECT COUNT(*) FROM jobs WHERE state = 'cancelled'"
TOLD = "SELECT COUNT(*) FROM events WHERE kind = 'cancelled'"


def test_a_cancel_that_was_cut_off_is_finished_by_the_next_one(home: GrassHome) -> None:
    home.ok("enqueue", "--hold", "--array", f"1-{JOBS}", "--", "true")
    cut_off = home.popen("cancel", "--yes", "all")
    until(lambda: home.rows(CANCELLED)[0][0], "nothing was cancelled")
    home.kill_daemon()
    _, said = cut_off.communicate(timeout=PATIENCE_S)
    done = home.rows(CANCELLED)[0][0]
    assert home.rows(TOLD) == [(done,)]
    assert cut_off.returncode == 0 or "went away before it answered" in said
    assert cut_off.returncode != 0 or done == JOBS
    home.ok("cancel", "--yes", "all")
    assert home.rows(CANCELLED) == home.rows(TOLD) == [(JOBS,)]
