"""`grass top` without a terminal: keys are pressed, and what is drawn is read."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial

from textual.pilot import Pilot
from textual.widgets import Static

from grass.cli.printing.signs import UNICODE, Signs
from grass.config import Home
from grass.tui.actions import Access
from grass.tui.app import TopApp
from grass.tui.reader import Reader
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

SMALL, LARGE = (80, 24), (160, 50)
_PAUSE_S = 0.02


class Play:
    """A screen, and a person before it."""

    def __init__(self, app: TopApp, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    def text(self) -> str:
        """Return what the topmost screen shows."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips)

    def toasts(self) -> str:
        """Return what was told in passing."""
        return "\n".join(one.message for one in self.app._notifications)

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def type(self, text: str) -> None:
        await self._pilot.press(*text)

    async def click(self, selector: str, at: tuple[int, int], times: int = 1) -> None:
        await self._pilot.click(selector, offset=at, times=times)

    async def resize(self, size: tuple[int, int]) -> None:
        await self._pilot.resize_terminal(*size)

    async def until(
        self, holds: Callable[[], object], otherwise: str = "it never came"
    ) -> None:
        """Wait for something that a thread or the daemon brings about."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            shown = f"{self.text()}\n{self.toasts()}"
            assert time.monotonic() < deadline, f"{otherwise}; last seen:\n{shown}"
            await self._pilot.pause(_PAUSE_S)

    async def shows(self, *texts: str) -> None:
        """Wait until texts are on the screen."""
        for text in texts:
            await self.until(partial(self._has, text), f"no {text!r}")

    def _has(self, text: str) -> bool:
        return text in self.text()

    async def shows_not(self, text: str) -> None:
        await self.until(lambda: text not in self.text(), f"{text!r} stayed")

    def static(self, selector: str) -> str:
        """Return the text of one part of the screen."""
        return str(self.app.screen.query_one(selector, Static).render())


def play(
    home: GrassHome,
    scene: Callable[[Play], Awaitable[None]],
    size: tuple[int, int] = SMALL,
    *,
    access: Access | None = None,
    signs: Signs = UNICODE,
) -> None:
    """Have a person look at the screen of a home."""
    place = Home(str(home.folder))
    app = TopApp(lambda: Reader(place), signs, access or Access())

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await scene(Play(app, pilot))

    asyncio.run(run())
