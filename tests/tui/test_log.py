"""The log of a job in `grass top`: its last line, searching it, and pausing it."""

from collections.abc import Callable
from typing import Any

import pytest

from grass.tui.log_view import LogView
from grass.tui.output_follower import OutputFollower
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import until

from .playing import LARGE, Play, play

pytestmark = pytest.mark.daemon

NO_CORE = ("--require", "{}", "--", "sh", "-c")


def wrote(home: GrassHome, job: int, text: str) -> None:
    until(
        lambda: home.run("logs", str(job)).stdout,
        "it wrote nothing",
        lambda seen: text in seen,
    )


def test_a_last_line_that_is_open_goes_on_in_the_log(
    shared: GrassHome, gate: Fifo
) -> None:
    line = f"printf 'one\\ntwo'; read x < {gate}; echo ' and three'"
    job = shared.enqueue(*NO_CORE, line)
    wrote(shared, job, "two")

    async def scene(at: Play) -> None:
        await at.shows("sh")
        await at.press("l")
        await at.shows("two", "lines 1-2, follows")
        gate.tell("go")
        await at.shows("two and three", "lines 1-2, ended")

    play(shared, scene)


Asked = Callable[[Any], dict[str, Any]]
Take = Callable[[dict[str, Any]], None]
Refused = Callable[[str], None]


class HeldCalls:
    """Calls of the screen that a test answers itself."""

    def __init__(self, at: Play) -> None:
        self._at = at
        self._calls: list[tuple[Asked, Take, Refused]] = []
        self._ask = at.app.ask
        at.app.ask = self._hold  # type: ignore[method-assign]

    def _hold(self, call: Asked, take: Take, refused: Refused) -> None:
        self._calls.append((call, take, refused))

    def __len__(self) -> int:
        return len(self._calls)

    def answer(self, **document: Any) -> None:
        self._calls.pop(0)[1](document)

    def refuse(self, why: str) -> None:
        self._calls.pop(0)[2](why)

    def let_go(self) -> None:
        """Have the daemon answer the first one."""
        self._ask(*self._calls.pop(0))


async def look_for(at: Play, words: str) -> None:
    await at.press("slash")
    await at.type(words)
    await at.press("enter")


def test_a_search_says_that_it_goes_on_until_all_was_searched(
    shared: GrassHome,
) -> None:
    job = shared.enqueue("--require", "{}", "seq 1 50")
    shared.wait(job)

    async def scene(at: Play) -> None:
        await at.shows("seq")
        await at.press("l")
        await at.shows("lines 29-50, ended")
        calls = HeldCalls(at)
        await look_for(at, "7")
        await at.shows("searching `7`, 0 so far")
        seven = {"line": 7, "at": 12, "text": "7"}
        calls.answer(matches=[seven], count=1, complete=False, next=8)
        await at.shows("searching `7`, 1 so far")
        # The daemon searches the rest, from the line that it was told.
        calls.let_go()
        await at.shows("`7` 5 of 5")
        assert not calls
        await look_for(at, "8")
        calls.refuse("no worker")
        await at.until(lambda: "no worker" in at.toasts())
        await at.shows_not("`8`")

    play(shared, scene)


def test_a_search_waits_for_lines_that_are_read(shared: GrassHome) -> None:
    job = shared.enqueue("--require", "{}", "seq 1 3000")
    shared.wait(job)

    async def scene(at: Play) -> None:
        await at.shows("seq")
        await at.press("l")
        await at.shows("lines 2,979-3,000, ended")
        calls = HeldCalls(at)
        await at.press("home")
        await look_for(at, "2345")
        await at.shows("searching `2345`")
        while calls or "1 of 1" not in at.text():
            await at.until(lambda: calls or "1 of 1" in at.text())
            if calls:
                calls.let_go()
        await at.shows("`2345` 1 of 1", "2346")

    play(shared, scene)


def test_a_paused_log_stays_as_it_is(shared: GrassHome, gate: Fifo) -> None:
    line = f"echo one; read x < {gate}; echo sec''ond; read x < {gate}"
    job = shared.enqueue(*NO_CORE, line)
    wrote(shared, job, "one")

    def waiting(at: Play) -> bool:
        follower = at.app.screen.query_one(LogView)._follower
        assert isinstance(follower, OutputFollower)
        return b"second" in b"".join(follower._pieces)

    async def scene(at: Play) -> None:
        await at.shows("log, live", "one")
        await at.press("p")
        await at.shows("paused for")
        gate.tell("go")
        await at.until(lambda: waiting(at))
        assert "second" not in at.text()
        # A log that is opened meanwhile is read once.
        await at.press("l")
        await at.shows("second", "paused: p goes on")
        await at.press("p")
        await at.shows("follows")
        await at.press("escape")
        await at.shows("● live", "second")
        gate.tell("go")

    play(shared, scene, LARGE)
