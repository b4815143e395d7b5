"""A browser that looks at the dashboard of a daemon with made-up GPUs.

    def test_a_job_shows(page: Page, box: GrassHome) -> None:
        box.enqueue("true")
        expect(page.get_by_role("row", name="true")).to_be_visible()

One browser serves the tests of a process, and one daemon those of a folder; each test
has a context of its own, which is logged in. A page that raises an error, breaks its
own security policy, opens a dialog of the browser or asks another host for something
fails its test.
"""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.support.browsing import A_LINK
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js")
PROGRAMS = ("chromium-headless-shell", "chromium")
"""The first draws no window around a page, and takes a third of the other's time."""
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
_NOT_LOADED = "Failed to load resource"
"""How a browser tells of a reply that is an error, or of a daemon that is gone."""

Look = Callable[..., Page]
"""Opens a page: `look(box, "/jobs", viewport=PHONE, role="read")`."""

expect.set_options(timeout=PATIENCE_S * 1000)


def program() -> str | None:
    """Return the path of Debian's Chromium, where there is one."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@pytest.fixture(scope="session")
def chromium() -> Iterator[tuple[Browser, asyncio.AbstractEventLoop]]:
    """Debian's Chromium, without a window, and the loop that playwright drives it by.

    Playwright leaves its loop marked as running: any test of the process that came
    after, and has a loop of its own, would fail.
    """
    path = program()
    if path is None:
        pytest.skip("there is no chromium, and installing it needs root")
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=path, args=options)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture
def browser(
    chromium: tuple[Browser, asyncio.AbstractEventLoop],
) -> Iterator[Browser]:
    """The browser, for one test."""
    browser, loop = chromium
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrassHome]:
    """A home with two GPUs, whose daemon serves the tests of a folder."""
    folder = tmp_path_factory.mktemp("serving")
    home = GrassHome(folder)
    gpus = FakeGpus(folder / "gpus")
    for number in range(2):
        gpus.device(number, memory="80G", utilization=40, temperature=50)
    home.environment.update(gpus.environment)
    gpus.program(home)
    home.ok("start")
    yield home
    home.end()


@pytest.fixture
def box(serving: GrassHome) -> Iterator[GrassHome]:
    """The home that pages look at; what a test leaves there is cleared away."""
    yield serving
    serving.tidy()


@pytest.fixture
def look(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open pages of homes; afterwards they must not have complained."""
    contexts = list[BrowserContext]()
    complaints = list[str]()

    def open_page(
        home: GrassHome, path: str = "/", role: str = "admin", **how: Any
    ) -> Page:
        context = browser.new_context(**{"viewport": DESKTOP, **how})
        context.set_default_timeout(PATIENCE_S * 1000)
        contexts.append(context)
        page = context.new_page()
        _listen(page, complaints)
        link = home.client.open_web(port=0, role=role)
        context.request.get(link["url"], headers=A_LINK)
        page.goto(f"http://127.0.0.1:{link['port']}{path}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints, complaints


@pytest.fixture
def page(look: Look, box: GrassHome) -> Page:
    """The overview of the folder's home, at the width of a desktop."""
    return look(box)


def path_at(page: Page, path: str) -> str:
    """Return the address of a path on the host that a page is of."""
    host = urlsplit(page.url)
    return f"{host.scheme}://{host.netloc}{path}"


def violations(page: Page) -> list[str]:
    """Return what axe finds wrong with a page, in one line each."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    options = "{resultTypes: ['violations'], elementRef: false}"
    found = page.evaluate(f"async () => (await axe.run({options})).violations")
    return [
        f"{one['id']}: {one['help']}: {node['html'][:200]}"
        for one in found
        for node in one["nodes"]
    ]


def violations_in_themes(page: Page) -> list[str]:
    """Return what axe finds wrong with a page in light and in dark."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    light = [f"light: {one}" for one in violations(page)]
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    return light + [f"dark: {one}" for one in violations(page)]


def sideways(page: Page) -> int:
    """Return by how many pixels a page is wider than its window."""
    wider = (
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return int(page.evaluate(wider))


def _listen(page: Page, complaints: list[str]) -> None:
    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_NOT_LOADED):
            complaints.append(message.text)

    def on_request(request: Request) -> None:
        host = urlsplit(request.url).hostname
        if host not in ("127.0.0.1", None):
            complaints.append(f"asked {host} for {request.url}")

    def on_dialog(dialog: Dialog) -> None:
        complaints.append(f"{dialog.type}: {dialog.message}")
        dialog.dismiss()

    page.on("console", on_console)
    page.on("dialog", on_dialog)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", on_request)
