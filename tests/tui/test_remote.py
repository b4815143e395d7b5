"""`grass top` of another machine's broker, with the role of the machine's token."""

import pytest

from grass.client.client import Client
from grass.config import Home
from grass.tui.actions import Access
from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, Machine, new_line

from .playing import LARGE, Play, play

pytestmark = pytest.mark.daemon


def access_of(home: GrassHome) -> Access:
    with Client(Home(str(home.folder))) as client:
        session = client.session()
    return Access(session["actor"], frozenset(session["rights"]))


def test_a_submitter_acts_on_own_jobs_alone(machine: Machine) -> None:
    desk, laptop = machine("desk"), machine("laptop")
    desk.ok("start", *LOOPBACK, "--name", "desk")
    laptop.ok("join", "--name", "ada", new_line(desk, "--role", "submit"))
    other = desk.enqueue("--hold", "--name", "theirs", "--", "true")
    own = laptop.enqueue("--hold", "--name", "own", "--", "true")

    async def scene(at: Play) -> None:
        await at.shows("theirs", "own", "● live")
        await at.press("a", "u")
        await at.until(lambda: desk.state(own) != "held")
        assert desk.state(other) == "held"
        await at.press("escape", "slash")
        await at.type("name~theirs")
        await at.press("enter")
        await at.shows("filter: name~theirs")
        await at.shows_not("● own")
        await at.press("u")
        await at.until(lambda: "your role may not do this" in at.toasts())

    play(laptop, scene, LARGE, access=access_of(laptop))
    assert desk.state(other) == "held"
