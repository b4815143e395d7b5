"""How output stands back behind jobs."""

import pytest

from grass.broker.shell.output_throttle import BYTES_PER_S, LASTS_S, LITTLE, Pace

PIECE = 256 * 1024


def test_nobody_rests_while_no_job_comes_or_goes() -> None:
    pace = Pace()
    assert pace.took(10 * BYTES_PER_S, now=100.0) == 100.0


def test_what_was_read_in_quiet_times_is_not_held_against_anybody() -> None:
    pace = Pace()
    pace.changed(100.0)
    for second in range(101, 110):
        pace.took(400_000_000, now=second)
    pace.changed(110.0)
    assert pace.took(PIECE, now=110.0) == pytest.approx(110.0 + PIECE / BYTES_PER_S)


@pytest.mark.parametrize("readers", [1, 12, 200])
def test_all_readers_together_get_so_much_while_jobs_come_and_go(readers: int) -> None:
    pace, now, given = Pace(), 100.0, 0
    resting = [now] * readers
    while now < 110.0:
        pace.changed(now)
        for number, until in enumerate(resting):
            if pace.rest_s(until, now) == 0:
                resting[number] = pace.took(PIECE, now)
                given += PIECE
        now += 0.001
    # Whoever rests has been given its piece already, once for each of them.
    most = 10 * BYTES_PER_S + readers * PIECE
    assert 9 * BYTES_PER_S <= given <= most + PIECE


def test_a_little_is_given_at_once_beside_any_number_of_readers() -> None:
    pace = Pace()
    pace.changed(100.0)
    for _ in range(200):
        pace.took(PIECE, now=100.0)
    assert pace.took(LITTLE, now=100.0) == 100.0


def test_a_rest_ends_when_jobs_have_come_to_rest() -> None:
    pace = Pace()
    pace.changed(100.0)
    until = pace.took(60 * BYTES_PER_S, now=100.0)
    assert pace.rest_s(until, 100.0) == pytest.approx(LASTS_S)
    assert pace.rest_s(until, 100.0 + LASTS_S) == 0


def test_who_rested_until_jobs_came_to_rest_leaves_no_debt() -> None:
    pace = Pace()
    pace.changed(100.0)
    pace.took(60 * BYTES_PER_S, now=100.0)
    pace.changed(101.0)
    assert pace.took(PIECE, now=101.0) == pytest.approx(101.0 + PIECE / BYTES_PER_S)
