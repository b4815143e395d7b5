"""Pictures of every view for the documentation: `python -m tests.web.pictures`.

Each view of a lab is drawn in both themes, and once at the width of a phone, into
`docs/images/` or the folder that is named; so is the page of a new user, and the one
that has lost its daemon. Needs pillow, which makes the files small.
"""

import io
import json
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.support.browser import DESKTOP, PHONE, path_at, program
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

from .lab import NAME, Lab

IMAGES = Path("docs/images")
THEMES = ("light", "dark")
LOOKS = {
    "light": ("light", DESKTOP),
    "dark": ("dark", DESKTOP),
    "phone": ("light", PHONE),
}
"""What each picture's name ends with; a phone is drawn once, which is enough to see."""
COLOURS = 256
Colour = tuple[int, int, int]
LINES = """\
python train.py vit-l16 --lr 3e-4 --seed 1
python train.py vit-l16 --lr 3e-4 --seed 2
python train.py vit-l16 --lr 1e-4 --seed 1
python train.py vit-l16 --lr 1e-4 --seed 2"""
_TIDY = """
([from, to, whole]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (whole ? node.data === from : node.data.includes(from)) {
      node.data = node.data.replaceAll(from, to);
    }
  }
}
"""


def main(folder: Path = IMAGES) -> int:
    """Draw all views."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program(),
            args=["--no-sandbox"],
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
        for look, how in LOOKS.items():
            camera = Camera(browser, lab.home, *how)
            for name, path in views(lab.named).items():
                camera.go(path)
                camera.shoot(folder / f"web-{name}-{look}.png")
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
        for look, how in LOOKS.items():
            camera = Camera(browser, home, *how)
            camera.go("/")
            camera.shoot(folder / f"web-welcome-{look}.png")
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
        context.set_default_timeout(PATIENCE_S * 1000)
        self._home = home
        self.page: Page = context.new_page()
        link = json.loads(home.ok("web", "--no-open", "--port", "0", "--json"))
        self.page.goto(link["url"])

    def go(self, path: str) -> None:
        """Open a view, and wait until it has read what it shows."""
        page = self.page
        page.goto(path_at(page, path))
        page.get_by_role("heading", level=1).wait_for()
        self._prepare(path)
        page.mouse.move(0, 0)
        page.evaluate("document.activeElement?.blur()")
        # A view reads by itself; its stream stays open, so the network is never idle.
        page.wait_for_timeout(1500)

    def _prepare(self, path: str) -> None:
        """Fill in and unfold what makes a view worth a picture."""
        page = self.page
        if path == "/new":
            page.get_by_role("tab", name="Many").click()
            page.get_by_label("Jobs", exact=True).fill(LINES)
            page.get_by_label("Directory").fill("/data/runs")
            page.get_by_label("GPUs").fill("1")
            page.get_by_label("Memory", exact=True).fill("24G")
        elif path == "/queues":
            page.get_by_role("button", name="Show the order").first.click()
        elif path == "/doctor":
            expect(page.get_by_role("button", name="Check again")).to_be_enabled()

    def shoot(self, file: Path) -> None:
        """Keep what is on the screen, without the places of this machine."""
        for change in (
            (str(self._home.desk), "/home/mara/vision", False),
            (str(self._home.folder), "/home/mara/.local/state/grass", False),
            (os.uname().release, "6.12.48", False),
            (".stand-in", "", False),
            (os.uname().nodename, NAME, True),
        ):
            self.page.evaluate(_TIDY, list(change))
        file.write_bytes(_small(self.page.screenshot()))


def _small(picture: bytes) -> bytes:
    """Return a picture with a palette: a third of the size, and it looks the same.

    Colours of surfaces and of most letters are kept as they are.
    """
    image = import_module("PIL.Image")
    made = image.open(io.BytesIO(picture)).convert("RGB")
    counted = sorted(made.getcolors(made.width * made.height), reverse=True)
    palette = [colour for _, colour in counted[: COLOURS // 2]]
    spread = made.quantize(COLOURS // 2, image.Quantize.MAXCOVERAGE).getpalette()
    palette += list(zip(*[iter(spread[: COLOURS // 2 * 3])] * 3, strict=True))
    # Pillow itself finds about the nearest colour, which tints whole surfaces.
    nearest = {colour: _nearest(colour, palette) for _, colour in counted}
    small = image.new("P", made.size)
    small.putpalette([part for colour in palette for part in colour])
    small.putdata([nearest[colour] for colour in made.get_flattened_data()])
    written = io.BytesIO()
    small.save(written, "PNG", optimize=True)
    return written.getvalue()


def _nearest(colour: Colour, palette: list[Colour]) -> int:
    """Return the place of the colour of a palette that is most like another one."""

    def distance(place: int) -> int:
        pairs = zip(colour, palette[place], strict=True)
        return sum((one - other) ** 2 for one, other in pairs)

    return min(range(len(palette)), key=distance)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
