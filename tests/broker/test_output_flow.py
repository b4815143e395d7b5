"""How fast output is read: sizes of chunks, and the throttle while jobs come and go."""

import pytest

from grass.broker.shell.output_flow import (
    ACTIVE_S,
    BYTES_PER_S,
    FAST_S,
    LEAST,
    MOST,
    SLOW_S,
    UNTHROTTLED,
    ChunkSizes,
    Throttle,
)

CHUNK = 256 * 1024


def test_no_reader_pauses_while_no_job_comes_or_goes() -> None:
    throttle = Throttle()
    assert throttle.pause_until(10 * BYTES_PER_S, now=100.0) == 100.0


def test_reads_in_quiet_times_do_not_count_later() -> None:
    throttle = Throttle()
    throttle.committed(100.0)
    for second in range(101, 110):
        throttle.pause_until(400_000_000, now=second)
    throttle.committed(110.0)
    until = throttle.pause_until(CHUNK, now=110.0)
    assert until == pytest.approx(110.0 + CHUNK / BYTES_PER_S)


@pytest.mark.parametrize("readers", [1, 12, 200])
def test_all_readers_together_get_so_much_while_jobs_come_and_go(readers: int) -> None:
    throttle, now, given = Throttle(), 100.0, 0
    pauses = [now] * readers
    while now < 110.0:
        throttle.committed(now)
        for number, until in enumerate(pauses):
            if throttle.pause_s(until, now) == 0:
                pauses[number] = throttle.pause_until(CHUNK, now)
                given += CHUNK
        now += 0.001
    # A reader that pauses has its chunk already, once for each of them.
    most = 10 * BYTES_PER_S + readers * CHUNK
    assert 9 * BYTES_PER_S <= given <= most + CHUNK


def test_a_small_read_needs_no_pause_beside_any_number_of_readers() -> None:
    throttle = Throttle()
    throttle.committed(100.0)
    for _ in range(200):
        throttle.pause_until(CHUNK, now=100.0)
    assert throttle.pause_until(UNTHROTTLED, now=100.0) == 100.0


def test_a_pause_ends_when_no_more_jobs_come_or_go() -> None:
    throttle = Throttle()
    throttle.committed(100.0)
    until = throttle.pause_until(60 * BYTES_PER_S, now=100.0)
    assert throttle.pause_s(until, 100.0) == pytest.approx(ACTIVE_S)
    assert throttle.pause_s(until, 100.0 + ACTIVE_S) == 0


def test_a_pause_that_ended_early_does_not_delay_the_next() -> None:
    throttle = Throttle()
    throttle.committed(100.0)
    throttle.pause_until(60 * BYTES_PER_S, now=100.0)
    throttle.committed(101.0)
    until = throttle.pause_until(CHUNK, now=101.0)
    assert until == pytest.approx(101.0 + CHUNK / BYTES_PER_S)


def length_over(bytes_per_s: float, delay_s: float = 0.001) -> int:
    """Read for a while over a link of this speed, and tell the length at the end."""
    chunks = ChunkSizes()
    for _ in range(50):
        length = chunks.length("w")
        chunks.received("w", length, delay_s + length / bytes_per_s)
    return chunks.length("w")


def test_chunks_are_large_over_a_quick_link() -> None:
    assert length_over(100e6) == MOST


def test_no_chunk_is_long_on_its_way_over_a_slow_link() -> None:
    for bytes_per_s in (15e3, 60e3, 250e3, 1e6, 4e6):
        length = length_over(bytes_per_s)
        assert length == LEAST or length / bytes_per_s <= SLOW_S


def test_a_link_that_becomes_slow_gets_smaller_chunks() -> None:
    chunks = ChunkSizes()
    for _ in range(10):
        chunks.received("w", chunks.length("w"), FAST_S / 2)
    assert chunks.length("w") == MOST
    for _ in range(10):
        chunks.received("w", chunks.length("w"), 2 * SLOW_S)
    assert chunks.length("w") == LEAST


def test_an_end_of_a_file_says_nothing_of_a_link() -> None:
    chunks = ChunkSizes()
    chunks.received("w", 10, FAST_S / 2)
    assert chunks.length("w") == LEAST


def test_each_worker_has_its_own_and_begins_anew() -> None:
    chunks = ChunkSizes()
    chunks.received("near", LEAST, FAST_S / 2)
    assert (chunks.length("near"), chunks.length("far")) == (2 * LEAST, LEAST)
    chunks.forget("near")
    assert chunks.length("near") == LEAST
