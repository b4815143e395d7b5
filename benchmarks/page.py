"""The page in a real browser: how soon what was asked for is on the screen.

Times are the page's own: from the beginning of a navigation, from a change of the
filter, or from the writing of a line to its being shown. Modules and style sheets come
from the daemon each time, since every figure has a browser's context of its own.
"""

import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from tests.support.browser import program
from tests.support.browsing import A_LINK

from benchmarks.figures import Benchmark, Claim, Contender, Figures
from benchmarks.fresh_home import ONE_SLOT, FreshHome, fresh_home
from benchmarks.sizes import Sizes

_OVERVIEW, _LOG, _BEHIND = "overview", "end of a log", "behind a job that writes"
_LINES_S = 5_000
_PROJECTS = 20
_TIMES = 5
_LINE_BYTES = 100
_LIMIT_MS = 300_000
_WRITE = f"""
import os, sys, time
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
began = time.monotonic()
for tenth in range(int(sys.argv[2]) * 10):
    for line in range({_LINES_S // 10}):
        print("line", tenth, line)
    sys.stdout.flush()
    time.sleep(max(0, began + (tenth + 1) / 10 - time.monotonic()))
print("the end", time.time(), flush=True)
time.sleep(1000)
"""
_FILTERED = """async ([text, count]) => {
  const box = document.querySelector('[role=combobox]');
  const total = () => document.querySelector('.jobs-total')?.textContent ?? '';
  const began = performance.now();
  box.value = text;
  box.dispatchEvent(new Event('input', { bubbles: true }));
  while (!total().includes(count)) {
    if (performance.now() - began > 60_000) throw new Error(`it shows ${total()}`);
    await new Promise(requestAnimationFrame);
  }
  return performance.now() - began;
}"""


def page(sizes: Sizes) -> Benchmark:
    """Return how long each thing takes to be on the screen."""
    return Benchmark(
        "page",
        [lambda: _shown(sizes), *(_filter(count) for count in _counts(sizes))],
        [
            _claim("overview with 100 jobs", _OVERVIEW, 1000, 500),
            _claim(f"end of a log of {sizes.log_bytes:,} bytes", _LOG, 1000, 500),
            _claim(f"last line behind {_LINES_S:,} lines/s", _BEHIND, 1000, 500),
            _claim(f"filter of {sizes.listed:,} jobs", _named(sizes.listed), 200, 150),
            _claim(
                f"filter of {sizes.history:,} jobs", _named(sizes.history), 300, 200
            ),
        ],
        "ms",
        ["Chromium without a window, on the same machine"],
    )


def _claim(what: str, figure: str, bar: float, goal: float) -> Claim:
    return Claim(what, lambda f: f[figure], bar, goal, unit="ms", at_most=True)


def _counts(sizes: Sizes) -> tuple[int, int]:
    return sizes.listed, sizes.history


def _named(count: int) -> str:
    return f"filter of {count:,}"


def _shown(sizes: Sizes) -> Figures:
    """Measure the overview, a long log and one that grows."""
    with fresh_home(slots=3) as fresh, _browser() as browser:
        fresh.client.enqueue_many(["true"] * 100, **ONE_SLOT)
        fresh.client.wait(["all"])
        file = fresh.folder / "long"
        line = "x" * (_LINE_BYTES - 1)
        file.write_text(f"{line}\n" * (sizes.log_bytes // _LINE_BYTES) + "the end 0\n")
        long = fresh.client.enqueue(["cat", str(file)], **ONE_SLOT)
        fresh.client.wait([str(long)])
        return {
            _OVERVIEW: _painted(browser, fresh, "/", "main", "succeeded|Nothing runs"),
            _LOG: _painted(browser, fresh, f"/jobs/{long}", "[role=log]", "the end 0"),
            _BEHIND: _behind(browser, fresh, sizes.written_s),
        }


def _painted(
    browser: Browser, fresh: FreshHome, path: str, place: str, text: str
) -> float:
    """Return when a text is on the page, from the beginning of its loading."""
    with _opened(browser, fresh, path) as opened:
        return _awaited(opened, place, text, "performance.now()")


def _behind(browser: Browser, fresh: FreshHome, seconds: float) -> float:
    """Return how long after its writing the last of many lines is shown."""
    go = fresh.folder / "go"
    words = [sys.executable, "-c", _WRITE, str(go), str(seconds)]
    job = fresh.client.enqueue(words, **ONE_SLOT)
    with _opened(browser, fresh, f"/jobs/{job}") as opened:
        opened.get_by_text("No output yet").wait_for()
        go.touch()
        late = "Date.now() - 1000 * Number(found[1])"
        return _awaited(opened, "[role=log]", r"the end (\d+\.\d+)", late)


def _awaited(opened: Page, place: str, text: str, value: str) -> float:
    look = f"""([place, text]) => {{
      const found = new RegExp(text).exec(document.querySelector(place)?.textContent);
      return found && {{ value: {value} }};
    }}"""
    told: Any = opened.wait_for_function(look, arg=[place, text], timeout=_LIMIT_MS)
    return float(told.json_value()["value"])


def _filter(count: int) -> Contender:
    def measured() -> Figures:
        with fresh_home(slots=2) as fresh, _browser() as browser:
            _fill(fresh, count)
            with _opened(browser, fresh, "/jobs") as opened:
                opened.locator("tr[data-key]").first.wait_for(timeout=_LIMIT_MS)
                return {_named(count): _filtered(opened, count)}

    return measured


def _filtered(opened: Page, count: int) -> float:
    """Return the median of some filters; each is cleared before the next."""
    taken = []
    for number in range(_TIMES):
        wanted = [f"@p{number}", f"{count // _PROJECTS:,} jobs matching"]
        taken.append(float(opened.evaluate(_FILTERED, wanted)))
        opened.evaluate(_FILTERED, ["", f"of {count:,} jobs"])
    return statistics.median(taken)


def _fill(fresh: FreshHome, jobs: int) -> None:
    """Have very many jobs that were cancelled, in some projects."""
    fresh.client.pause()
    for number in range(_PROJECTS):
        job = {"command": ["true"]}
        settings = {"project": f"p{number}", **ONE_SLOT}
        ids = fresh.client.enqueue_jobs([job] * (jobs // _PROJECTS), settings)
        fresh.client.cancel([f"{ids['first']}-{ids['last']}"])


@contextmanager
def _browser() -> Iterator[Browser]:
    path = program()
    if path is None:
        raise RuntimeError("there is no chromium: `make chromium` installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=Path(path), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@contextmanager
def _opened(browser: Browser, fresh: FreshHome, path: str) -> Iterator[Page]:
    """Go to a page of a home, in a browser that has seen nothing of it."""
    context = browser.new_context()
    link = fresh.client.open_web(port=0)
    context.request.get(link["url"], headers=A_LINK)
    opened = context.new_page()
    opened.goto(f"http://127.0.0.1:{link['port']}{path}", wait_until="commit")
    yield opened
    context.close()
