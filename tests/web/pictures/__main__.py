"""Pictures of every view for the documentation: `python -m tests.web.pictures`.

Each view of a lab is drawn in both themes, at the width of a desktop and of a phone,
into `docs/images/` or the folder that is named; so is the page of a new user, and the
one that has lost its daemon. Needs pillow, which makes the files small.
"""

import io
import json
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.support.browser import DESKTOP, PHONE, path_at
from tests.support.homes import GrassHome

from .lab import NAME, Lab

IMAGES = Path("docs/images")
THEMES = ("light", "dark")
SIZES = {"": DESKTOP, "-phone": PHONE}
COLOURS = 128
LINES = """\
vit-l16-s1;;logs/s1.log;;python train.py vit-l16 --seed 1;;;
vit-l16-s2;;logs/s2.log;;python train.py vit-l16 --seed 2;;;
vit-l16-s3;;logs/s3.log;;python train.py vit-l16 --seed 3;;;"""
_TIDY = """
([from, to]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (node.data.includes(from)) node.data = node.data.replaceAll(from, to);
  }
}
"""


def main(folder: Path = IMAGES) -> int:
    """Draw all views."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        _draw_lab(browser, folder)
        _draw_new_home(browser, folder)
        browser.close()
    return 0


def _draw_lab(browser: Browser, folder: Path) -> None:
    place = Path(tempfile.mkdtemp(prefix="grass-"))
    lab = Lab(place)
    try:
        lab.fill()
        for theme in THEMES:
            for size, viewport in SIZES.items():
                camera = Camera(browser, lab.home, theme, viewport)
                for name, path in views(lab.named).items():
                    camera.go(path)
                    camera.shoot(folder / f"web-{name}-{theme}{size}.png")
        _draw_without_daemon(browser, lab, folder)
    finally:
        lab.end()
        shutil.rmtree(place, ignore_errors=True)


def views(jobs: dict[str, int]) -> dict[str, str]:
    """Return the path of each view of a lab."""
    return {
        "overview": "/",
        "jobs": "/jobs",
        "job": f"/jobs/{jobs['vit-l16']}",
        "usage": f"/jobs/{jobs['vit-l16']}?tab=usage",
        "details": f"/jobs/{jobs['vit-l16']}?tab=details",
        "failed": f"/jobs/{jobs['failed']}",
        "explain": f"/jobs/{jobs['sdxl-lora']}",
        "timeline": "/timeline?span=6h",
        "queues": "/queues",
        "new": "/new",
        "events": "/events",
        "doctor": "/doctor",
    }


def _draw_without_daemon(browser: Browser, lab: Lab, folder: Path) -> None:
    cameras = [Camera(browser, lab.home, theme, DESKTOP) for theme in THEMES]
    for camera in cameras:
        camera.go("/")
    lab.home.kill_daemon()
    for theme, camera in zip(THEMES, cameras, strict=True):
        expect(camera.page.locator("[data-stale]")).to_be_attached()
        camera.shoot(folder / f"web-gone-{theme}.png")


def _draw_new_home(browser: Browser, folder: Path) -> None:
    place = Path(tempfile.mkdtemp(prefix="grass-"))
    home = GrassHome(place)
    try:
        home.ok("start", "--name", NAME)
        for theme in THEMES:
            for size, viewport in SIZES.items():
                camera = Camera(browser, home, theme, viewport)
                camera.go("/")
                camera.shoot(folder / f"web-welcome-{theme}{size}.png")
    finally:
        home.end()
        shutil.rmtree(place, ignore_errors=True)


class Camera:
    """A page that is looked at in one theme, at one size."""

    def __init__(
        self, browser: Browser, home: GrassHome, theme: str, viewport: ViewportSize
    ) -> None:
        context = browser.new_context(
            viewport=viewport,
            color_scheme="dark" if theme == "dark" else "light",
            reduced_motion="reduce",
            timezone_id="UTC",
        )
        self._home = home
        self.page: Page = context.new_page()
        link = json.loads(home.ok("web", "--no-open", "--port", "0", "--json"))
        self.page.goto(link["url"])

    def go(self, path: str) -> None:
        """Open a view, and wait until it has read what it shows."""
        page = self.page
        page.goto(path_at(page, path))
        page.get_by_role("heading", level=1).wait_for()
        if path == "/new":
            page.get_by_role("tab", name="Many").click()
            page.get_by_role("textbox").first.fill(LINES)
        # A view reads by itself; its stream stays open, so the network is never idle.
        page.wait_for_timeout(1500)

    def shoot(self, file: Path) -> None:
        """Keep what is on the screen, without the places of this machine."""
        desk = (str(self._home.desk), "/home/mara/vision")
        state = (str(self._home.folder), "/home/mara/.local/state/grass")
        for pair in (desk, state):
            self.page.evaluate(_TIDY, list(pair))
        file.write_bytes(_small(self.page.screenshot()))


def _small(picture: bytes) -> bytes:
    """Return a picture with a palette: a third of the size, and it looks the same."""
    image = import_module("PIL.Image")
    made = image.open(io.BytesIO(picture)).convert("RGB")
    written = io.BytesIO()
    made.quantize(COLOURS, image.Quantize.MAXCOVERAGE, dither=image.Dither.NONE).save(
        written, "PNG", optimize=True
    )
    return written.getvalue()


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
