"""Pictures of every view for the documentation: `python -m tests.web.pictures`.

A home with two made-up GPUs gets jobs as a lab has them; each view is drawn in both
themes, at the width of a desktop and of a phone, into `docs/images/`.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from tests.support.browser import DESKTOP, PHONE, path_at
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

IMAGES = Path("docs/images")
THEMES = ("light", "dark")
SIZES = {"desktop": DESKTOP, "phone": PHONE}
EPOCHS = (
    "for n in $(seq 1 40); do echo epoch $n loss 0.$((900 / n)); sleep 0.05; done; "
    "sleep 1000"
)


def main() -> int:
    """Draw all views."""
    folder = Path(tempfile.mkdtemp(prefix="grass-pictures-"))
    home = GrassHome(folder)
    try:
        views = {**_prepared(home, folder)}
        _draw(home, views)
    finally:
        home.end()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _prepared(home: GrassHome, folder: Path) -> dict[str, str]:
    """Fill a home with jobs; return the path of each view."""
    gpus = FakeGpus(folder / "gpus")
    for number in range(2):
        gpus.device(number, memory="80G", utilization=87 - 50 * number, temperature=61)
    home.environment.update(gpus.environment)
    gpus.program(home)
    home.ok("start")
    home.ok("create-queue", "night", "--capacity", "{gpu:{'1':1}}")
    home.wait(home.enqueue("--name", "prepare", "--", "sh", "-c", "echo 8,000 images"))
    broken = "echo Traceback; echo ValueError: lr must be positive >&2; exit 1"
    home.wait(home.enqueue("--name", "fit-lr-0", "--", "sh", "-c", broken))
    training = home.enqueue(
        *("--name", "train-vit", "-g", "0.5", "-c", "0"), "--", "sh", "-c", EPOCHS
    )
    home.enqueue("--name", "train-mlp", "-g", "0.5", "-c", "0", "--", "sleep", "1000")
    home.enqueue("--name", "evaluate", "-g", "1", "-c", "0", "--", "sleep", "1000")
    for number in range(4):
        home.enqueue("night", "--name", f"sweep-{number}", "-g", "1", "--", "true")
    until(lambda: home.logs(training), "it wrote nothing", lambda it: "epoch 40" in it)
    return {
        "overview": "/",
        "jobs": "/jobs",
        "job": f"/jobs/{training}",
        "usage": f"/jobs/{training}?tab=usage",
        "details": f"/jobs/{training}?tab=details",
        "timeline": "/timeline?span=1h",
        "queues": "/queues",
        "new": "/new",
        "events": "/events",
        "doctor": "/doctor",
    }


def _draw(home: GrassHome, views: dict[str, str]) -> None:
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox"]
        )
        for theme in THEMES:
            for size, viewport in SIZES.items():
                page = _opened(browser, home, theme, viewport)
                for name, path in views.items():
                    _picture(page, path, IMAGES / f"web-{name}-{theme}-{size}.png")
        browser.close()


def _opened(
    browser: Browser, home: GrassHome, theme: str, viewport: ViewportSize
) -> Page:
    context = browser.new_context(viewport=viewport, color_scheme=theme)  # type: ignore[arg-type]
    page = context.new_page()
    link = json.loads(home.ok("web", "--no-open", "--port", "0", "--json"))
    page.goto(link["url"])
    return page


def _picture(page: Page, path: str, file: Path) -> None:
    page.goto(path_at(page, path))
    page.get_by_role("heading", level=1).wait_for()
    # What a view reads by itself has come when nothing more is under way.
    page.wait_for_timeout(1500)
    page.screenshot(path=file)


if __name__ == "__main__":
    sys.exit(main())
