"""The picture that `show --watch` draws."""

import os

import pytest

from grass.cli.parsing.options import Values
from grass.cli.parsing.show_options import ShowOptions
from grass.cli.printing.live_screen import frame
from grass.cli.printing.show_views import Listing
from grass.cli.printing.table import cells

from .documents import job


@pytest.mark.parametrize(
    ("reported", "width", "height"),
    [((0, 0), 80, 24), ((40, 0), 40, 24), ((0, 10), 80, 10), ((100, 30), 100, 30)],
)
def test_a_picture_fits_a_terminal_also_one_that_does_not_know_its_size(
    monkeypatch: pytest.MonkeyPatch,
    reported: tuple[int, int],
    width: int,
    height: int,
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size(reported))
    long = " ".join(["word"] * 60)
    jobs = [job(id=number, command=[long]) for number in range(50)]
    drawn = frame(Listing(ShowOptions(Values(), [])), {"jobs": jobs})
    lines = drawn.removeprefix("\x1b[H").removesuffix("\x1b[J").split("\x1b[K")
    shown = [line.strip("\n") for line in lines if line.strip("\n")]
    assert len(shown) <= height
    assert max(map(cells, shown)) == width
    assert "50 shown" in shown[-1]


def test_below_the_picture_it_is_said_that_the_broker_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = os.terminal_size((40, 10))
    monkeypatch.setattr(os, "get_terminal_size", lambda _: size)
    jobs = [job(id=number) for number in range(50)]
    view = Listing(ShowOptions(Values(), []))
    drawn = frame(view, {"jobs": jobs}, "the broker at desk:7500 cannot be reached")
    lines = drawn.removeprefix("\x1b[H").removesuffix("\x1b[K\x1b[J").split("\x1b[K\n")
    assert len(lines) == 10
    assert "50 shown" in lines[-2]
    assert lines[-1].startswith("the broker at desk:7500 cannot be")
    assert cells(lines[-1]) <= 40
