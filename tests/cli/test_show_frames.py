"""The frames of `show --watch`, what of a page fits into them, and keys."""

import os

import pytest

from grass.cli.parsing.options import Values
from grass.cli.printing.keys import _split
from grass.cli.printing.live_screen import frame
from grass.cli.printing.page import Page, Section
from grass.cli.printing.show.show_options import ShowOptions
from grass.cli.printing.show.show_views import JobsView
from grass.cli.printing.styled import cells

from .documents import job

VIEW = JobsView(ShowOptions(Values(), []))


def drawn_lines(drawn: str) -> list[str]:
    for sequence in ("\x1b[H", "\x1b[K", "\n\x1b[J"):
        drawn = drawn.replace(sequence, "")
    return drawn.split("\n")


@pytest.mark.parametrize(
    ("reported", "width", "height"),
    [((0, 0), 80, 24), ((40, 0), 40, 24), ((0, 10), 80, 10), ((100, 30), 100, 30)],
)
def test_a_frame_fits_a_terminal_also_one_that_does_not_know_its_size(
    monkeypatch: pytest.MonkeyPatch,
    reported: tuple[int, int],
    width: int,
    height: int,
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size(reported))
    long = " ".join(["word"] * 60)
    jobs = [job(id=number, command=[long]) for number in range(50)]
    lines = drawn_lines(frame(VIEW, {"jobs": jobs})[0])
    assert len(lines) == height
    assert max(map(cells, lines)) == width
    assert "50 shown" in lines[-2]
    assert lines[-1].startswith(f"lines 1-{height - 4} of 50; arrows and ")


def test_below_a_frame_it_is_said_that_the_broker_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = os.terminal_size((40, 10))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: size)
    jobs = [job(id=number) for number in range(50)]
    trouble = "the broker at desk:7500 cannot be reached"
    lines = drawn_lines(frame(VIEW, {"jobs": jobs}, trouble)[0])
    assert len(lines) == 10
    assert "50 shown" in lines[-3]
    assert lines[-2].startswith("the broker at desk:7500 cannot be")
    assert cells(lines[-2]) <= 40


def test_the_letter_at_the_edge_is_not_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    size = os.terminal_size((40, 10))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: size)
    jobs = [job(command=["word"] * 60)]
    drawn = frame(VIEW, {"jobs": jobs})[0]
    full = [line for line in drawn.split("\n") if "word" in line]
    assert [line.endswith("...") for line in full] == [True]


def page(jobs: int, running: int = 0) -> Page:
    return Page(
        [
            Section(["WORKER", *(f"unit {n}" for n in range(6))], ["worker"]),
            Section(["QUEUE", *(f"queue {n}" for n in range(6))], ["queues"]),
        ],
        ["ID"],
        [f"job {number}" for number in range(jobs)],
        ["summary"],
        first=running,
    )


@pytest.mark.parametrize(
    ("jobs", "running", "first", "seen"),
    [
        (3, 0, ["WORKER", "QUEUE"], 3),
        (10, 3, ["WORKER", "queues"], 10),
        (30, 10, ["WORKER", "queues"], 10),
        (30, 11, ["worker", "queues"], 17),
        (30, 20, ["ID"], 20),
    ],
)
def test_tables_are_folded_until_running_jobs_are_seen(
    jobs: int, running: int, first: list[str], seen: int
) -> None:
    window = page(jobs, running).fitted(23, 0)
    assert len(window.lines) <= 23
    assert [line for line in window.lines if line in first] == first
    shown = [line for line in window.lines if line.startswith("job ")]
    assert len(shown) == window.shown
    assert window.shown >= min(seen, jobs)
    assert window.lines[-1] == "summary"


def test_a_page_is_scrolled_to_its_ends_and_not_beyond() -> None:
    long = page(50)
    window = long.fitted(20, 0)
    assert window.top == 0
    assert window.after("up") == 0
    assert window.after("down") == 1
    assert window.after("page down") == window.shown
    bottom = long.fitted(20, window.after("end"))
    assert "job 49" in bottom.lines
    assert bottom.after("page down") == bottom.top
    assert bottom.after("home") == 0
    # A list that has become shorter is seen to its end.
    assert page(30).fitted(20, bottom.top).lines[-3] == "job 29"


def test_keys_are_told_apart_also_when_they_arrive_in_pieces() -> None:
    assert _split(b"\x1b[Aq") == [b"\x1b[A", b"q", b""]
    assert _split(b"\x1b[5") == [b"\x1b[5"]
    assert _split(b"\x1b[5~\x1b") == [b"\x1b[5~", b"\x1b"]
    assert _split(b"\x1bq") == [b"q", b""]
    assert _split(b"xyz\xc3\xa4") == [b""]
