"""A browser that looks at the dashboard of a daemon with made-up GPUs.

    def test_a_job_shows(page: Page, box: GrassHome) -> None:
        box.enqueue("true")
        expect(page.get_by_role("row", name="true")).to_be_visible()

One browser serves the tests of a process, and one daemon those of a folder. Each test
has pages of its own; those of the folder's daemon share a context, which is logged in
and has the files of the page already. A page that raises an error, breaks its own
security policy, opens a dialog of the browser or asks another host for something fails
its test.
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

_TURN = """path => {
  history.pushState(null, "", path);
  dispatchEvent(new PopStateEvent("popstate"));
}"""

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


class Visits:
    """Contexts of the browser: each is logged in at one home, in one role."""

    def __init__(self) -> None:
        self.lasting = set[GrassHome]()
        """Homes that outlive a test: their contexts are kept."""
        self._kept = dict[str, tuple[BrowserContext, str]]()

    def context(
        self, browser: Browser, home: GrassHome, role: str, how: dict[str, Any]
    ) -> tuple[BrowserContext, str]:
        """Return a context, and where its pages are."""
        key = f"{home.folder} {role} {sorted(how.items())}"
        if key not in self._kept:
            made = _log_in(browser, home, role, how)
            if home not in self.lasting:
                return made
            self._kept[key] = made
        return self._kept[key]

    def leave(self, context: BrowserContext) -> None:
        """Close what a test has opened, and forget what its pages have kept."""
        if context not in [one for one, _ in self._kept.values()]:
            context.close()
            return
        context.clear_permissions()
        for page in context.pages[1:]:
            page.close()
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")
            page.evaluate("localStorage.clear()")
            page.close()


def _log_in(
    browser: Browser, home: GrassHome, role: str, how: dict[str, Any]
) -> tuple[BrowserContext, str]:
    context = browser.new_context(**{"viewport": DESKTOP, **how})
    context.set_default_timeout(PATIENCE_S * 1000)
    link = home.client.open_web(port=0, role=role)
    context.request.get(link["url"], headers=A_LINK)
    return context, f"http://127.0.0.1:{link['port']}"


@pytest.fixture(scope="session")
def visits() -> Visits:
    """The contexts that tests share."""
    return Visits()


@pytest.fixture(scope="session")
def serving(
    tmp_path_factory: pytest.TempPathFactory, visits: Visits
) -> Iterator[GrassHome]:
    """A home with two GPUs, whose daemon serves the tests of a folder."""
    folder = tmp_path_factory.mktemp("serving")
    home = GrassHome(folder)
    gpus = FakeGpus(folder / "gpus")
    for number in range(2):
        gpus.device(number, memory="80G", utilization=40, temperature=50)
    home.environment.update(gpus.environment)
    gpus.program(home)
    home.ok("start")
    visits.lasting.add(home)
    yield home
    home.end()


@pytest.fixture
def box(serving: GrassHome) -> Iterator[GrassHome]:
    """The home that pages look at; what a test leaves there is cleared away."""
    yield serving
    serving.tidy()


@pytest.fixture
def look(browser: Browser, visits: Visits) -> Iterator[Callable[..., Page]]:
    """Open pages of homes; afterwards they must not have complained."""
    contexts = dict[BrowserContext, None]()
    complaints = list[str]()

    def open_page(
        home: GrassHome, path: str = "/", role: str = "admin", **how: Any
    ) -> Page:
        context, place = visits.context(browser, home, role, how)
        contexts[context] = None
        page = context.new_page()
        _listen(page, complaints)
        page.goto(place + path)
        return page

    yield open_page
    for context in contexts:
        visits.leave(context)
    assert not complaints, complaints


@pytest.fixture
def page(look: Look, box: GrassHome) -> Page:
    """The overview of the folder's home, at the width of a desktop."""
    return look(box)


def path_at(page: Page, path: str) -> str:
    """Return the address of a path on the host that a page is of."""
    host = urlsplit(page.url)
    return f"{host.scheme}://{host.netloc}{path}"


def turn_to(page: Page, path: str) -> None:
    """Show another view, as a link on the page does: nothing is loaded anew."""
    page.evaluate(_TURN, path)


def violations(page: Page, *rules: str) -> list[str]:
    """Return what axe finds wrong with a page, in one line each."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    options = {"resultTypes": ["violations"], "elementRef": False}
    asked = options | ({"runOnly": list(rules)} if rules else {})
    found = page.evaluate("async (how) => (await axe.run(how)).violations", asked)
    return [
        f"{one['id']}: {one['help']}: {node['html'][:200]}"
        for one in found
        for node in one["nodes"]
    ]


def violations_in_themes(page: Page) -> list[str]:
    """Return what axe finds wrong with a page in light and in dark.

    Of what it looks for, only colours differ between the two.
    """
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    light = [f"light: {one}" for one in violations(page)]
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    return light + [f"dark: {one}" for one in violations(page, "color-contrast")]


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
