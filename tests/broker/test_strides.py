"""How large pieces of output are."""

from grass.broker.shell.output_chunks import LATE_S, LEAST, MOST, SOON_S, Strides


def settled(bytes_per_s: float, delay_s: float = 0.001) -> int:
    """Read for a while over a link of this speed, and tell the length at the end."""
    strides = Strides()
    for _ in range(50):
        length = strides.length("w")
        strides.came("w", length, delay_s + length / bytes_per_s)
    return strides.length("w")


def test_pieces_are_large_over_a_quick_link() -> None:
    assert settled(100e6) == MOST


def test_no_piece_is_long_on_its_way_over_a_slow_link() -> None:
    for bytes_per_s in (15e3, 60e3, 250e3, 1e6, 4e6):
        length = settled(bytes_per_s)
        assert length == LEAST or length / bytes_per_s <= LATE_S


def test_a_link_that_becomes_slow_gets_smaller_pieces() -> None:
    strides = Strides()
    for _ in range(10):
        strides.came("w", strides.length("w"), SOON_S / 2)
    assert strides.length("w") == MOST
    for _ in range(10):
        strides.came("w", strides.length("w"), 2 * LATE_S)
    assert strides.length("w") == LEAST


def test_an_end_of_a_file_says_nothing_of_a_link() -> None:
    strides = Strides()
    strides.came("w", 10, SOON_S / 2)
    assert strides.length("w") == LEAST


def test_each_worker_has_its_own_and_begins_anew() -> None:
    strides = Strides()
    strides.came("near", LEAST, SOON_S / 2)
    assert (strides.length("near"), strides.length("far")) == (2 * LEAST, LEAST)
    strides.forget("near")
    assert strides.length("near") == LEAST
