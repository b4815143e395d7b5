"""The fixtures of tests with a real browser."""

from tests.support.browser import box, browser, chromium, look, page, serving
from tests.support.fixtures import cold, gpus

__all__ = ["box", "browser", "chromium", "cold", "gpus", "look", "page", "serving"]
