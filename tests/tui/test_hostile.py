"""Whatever a job is called, does and writes is text on every screen of `grass top`."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.tui.job_list import JobList
from grass.tui.main_screen import MainScreen
from tests.support.homes import GrassHome
from tests.support.hostile import (
    PROPERTY,
    TEXTS,
    fill,
    hostile_gpus,
    hostile_stranger,
)

from .playing import LARGE, Play, play

pytestmark = pytest.mark.daemon


@pytest.fixture
def place(cold: GrassHome, tmp_path: Path) -> Iterator[GrassHome]:
    gpus = hostile_gpus(tmp_path)
    cold.environment.update(gpus.environment)
    cold.ok("start", "--name", PROPERTY)
    with hostile_stranger(gpus, tmp_path):
        fill(cold, tmp_path)
        yield cold


def clean(at: Play) -> None:
    """No letter of the screen is one that a terminal obeys."""
    assert at.text().replace("\n", "").isprintable(), repr(at.text())


def without_controls(at: Play) -> None:
    """The same of an output, whose letters that turn the direction are text."""
    found = {one for one in at.text() if unicodedata.category(one) == "Cc"}
    assert found == {"\n"}


def test_no_screen_obeys_a_name_a_command_or_a_line(place: GrassHome) -> None:
    async def back(at: Play) -> None:
        await at.press("escape")
        # A key that comes sooner goes to the screen that is being left.
        await at.until(
            lambda: isinstance(at.app.screen, MainScreen), "the screen stayed"
        )
        await at.shows("● live")

    async def scene(at: Play) -> None:
        await at.shows("● live", "<b hostile>", TEXTS["a script"], "[bold]b[/]")
        without_controls(at)
        await at.press("l")
        await at.shows("last <hostile> line")
        without_controls(at)
        await back(at)
        await at.press("e")
        await at.shows("is running")
        clean(at)
        await back(at)
        await at.press("full_stop")
        await at.shows("Cancel")
        await back(at)
        for _row in at.app.screen.query_one(JobList).rows:
            await at.press("j")
            without_controls(at)
        await at.press("enter")
        await at.shows("enqueued", "ATTEMPT", "exit 3")
        clean(at)
        await back(at)
        await at.press("g", "n")
        await at.shows("<b hostile>")
        clean(at)
        await back(at)
        await at.press("g", "q")
        await at.shows("QUEUE", PROPERTY)
        clean(at)
        await back(at)
        await at.press("slash")
        await at.type("[/nothing]")
        await at.press("enter")
        await at.shows("[/nothing]", "Esc clears the filter")
        without_controls(at)

    play(place, scene, LARGE)
