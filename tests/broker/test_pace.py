"""How output stands back behind jobs."""

import pytest

from grass.broker.pace import BYTES_PER_S, LASTS_S, Pace


def test_nobody_rests_while_no_job_comes_or_goes() -> None:
    pace = Pace()
    pace.took(10 * BYTES_PER_S, now=100.0)
    assert pace.rest_s(100.0) == 0


def test_all_readers_together_get_so_much_while_jobs_come_and_go() -> None:
    pace, now, given = Pace(), 100.0, 0
    while now < 110.0:
        pace.changed(now)
        rest_s = pace.rest_s(now)
        if rest_s == 0:
            # Two readers who rested find out at the same time that they may go on.
            for _ in range(2):
                pace.took(BYTES_PER_S // 40, now)
                given += BYTES_PER_S // 40
        now += rest_s
    assert given == pytest.approx(10 * BYTES_PER_S, rel=0.01)


def test_a_little_costs_next_to_nothing() -> None:
    pace = Pace()
    pace.changed(100.0)
    pace.took(80, now=100.0)
    assert pace.rest_s(100.0) < 1e-4


def test_a_rest_ends_when_jobs_have_come_to_rest() -> None:
    pace = Pace()
    pace.changed(100.0)
    pace.took(60 * BYTES_PER_S, now=100.0)
    assert pace.rest_s(100.0) == pytest.approx(LASTS_S)
    assert pace.rest_s(100.0 + LASTS_S) == 0
