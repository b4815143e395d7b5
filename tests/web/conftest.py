"""The fixtures of tests with a real browser."""

from tests.support.browser import box, browser, chromium, look, page, serving, visits
from tests.support.fixtures import cold, fifo, gate, gpus

__all__ = [
    "box",
    "browser",
    "chromium",
    "cold",
    "fifo",
    "gate",
    "gpus",
    "look",
    "page",
    "serving",
    "visits",
]
