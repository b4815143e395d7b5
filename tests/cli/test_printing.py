"""Tables, durations, escaped text and exit codes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.cli.commands.wait import exit_code
from grass.cli.printing.quantities import brief, size_text
from grass.cli.printing.show.summary import folded
from grass.cli.printing.streams import safe
from grass.cli.printing.styled import cells, cut
from grass.cli.printing.table import Screen, render
from grass.cli.printing.wording import number
from grass.client.id_ranges import as_ranges
from grass.errors import UsageError
from grass.model.durations import seconds

PIPE = Screen(None, colours=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("30d", 2592000)],
)
def test_durations_are_read(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "s", "-1", "nan", "inf", "1e9d", "10x"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        seconds(text)


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(-1, "0s"), (59.9, "59s"), (185, "3m05s"), (7800, "2h10m"), (356400, "4d3h")],
)
def test_durations_are_brief(duration: float, expected: str) -> None:
    assert brief(duration) == expected


def test_sizes_are_readable() -> None:
    sizes = [0, 1023, 1536, 5 * 2**30, 2**50]
    expected = ["0 B", "1023 B", "1.5 KiB", "5.0 GiB", "1024.0 TiB"]
    assert [size_text(size) for size in sizes] == expected


@given(st.text())
def test_nothing_reaches_the_terminal_as_a_command(text: str) -> None:
    shown = safe(text)
    assert all(ord(letter) >= 32 and not 127 <= ord(letter) < 160 for letter in shown)
    shown.encode()


def test_bytes_that_are_not_utf8_are_written_out() -> None:
    assert safe("a\udcff\x1b[31m\nb") == "a\\xff\\x1b[31m\\nb"


@given(st.text(), st.integers(0, 40))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width


def test_a_table_is_aligned_in_cells() -> None:
    text = render(("A", "B"), [["名前", "x"], ["n", "y"]], PIPE)
    assert text == "A     B\n名前  x\nn     y\n"


def test_in_a_pipe_nothing_is_cut() -> None:
    long = "x" * 500
    assert long in render(("A", "B"), [[long, long]], PIPE)


def test_on_a_terminal_every_line_fits() -> None:
    screen = Screen(80, colours=False)
    rows = [["x" * 100, "y" * 100, "z" * 100], ["名" * 100, "", "名" * 100]]
    lines = render(("A", "B", "C"), rows, screen).splitlines()
    assert all(cells(line) <= 80 for line in lines)


def test_colours_do_not_change_the_alignment() -> None:
    text = render(
        ("S", "N"), [["failed", "x"]], Screen(80, colours=True), {"failed": "red"}
    )
    heads, line = text.splitlines()
    assert heads == "\x1b[1;4mS\x1b[0m       \x1b[1;4mN\x1b[0m"
    assert line == "\x1b[31mfailed\x1b[0m  x"


def test_equal_units_are_folded() -> None:
    shares = {
        "0": "1/1",
        "1": "1/1",
        "2": "0.5/1",
        "4": "0.5/1",
        "a": "1/1",
        "b": "1/1",
    }
    expected = ["0-1: 1/1", "2: 0.5/1", "4: 0.5/1", "a: 1/1", "b: 1/1"]
    assert folded(shares) == expected


@given(st.integers(0, 10**12))
def test_amounts_lose_no_digit(amount: int) -> None:
    assert round(float(number(amount / 10_000)) * 10_000) == amount


@given(st.sets(st.integers(1, 50)))
def test_ranges_name_exactly_the_ids(ids: set[int]) -> None:
    named: set[int] = set()
    for text in as_ranges(list(ids)):
        first, last = text.split("-")
        named |= set(range(int(first), int(last) + 1))
    assert named == ids


@pytest.mark.parametrize(
    ("state", "code", "signal", "expected"),
    [
        ("succeeded", 0, None, 0),
        ("failed", 3, None, 3),
        ("failed", None, 9, 137),
        ("failed", None, None, 125),
        ("cancelled", None, 15, 125),
        ("lost", None, None, 125),
    ],
)
def test_a_shell_sees_how_a_job_ended(
    state: str, code: int | None, signal: int | None, expected: int
) -> None:
    job = {"state": state, "exit_code": code, "signal": signal}
    assert exit_code(job) == expected
