"""A lost GPU on the page: its card, the units of its worker, and the way back."""

import os

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Look, sideways, violations_in_themes
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = pytest.mark.daemon

LOST = "it is lost from the bus"


def shot(page: Page, name: str) -> None:
    """Keep a picture, where somebody wants to look at one."""
    if folder := os.environ.get("GRASS_SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_a_lost_gpu_is_shown_as_lost_until_it_works_and_is_acknowledged(
    look: Look, cold: GrassHome, gpus: FakeGpus
) -> None:
    for number in range(3):
        gpus.device(number, memory="80G", utilization=40, temperature=50)
    cold.environment.update(gpus.environment)
    cold.ok("start", "--name", "desk")
    gpus.fault(0, "lost")
    page = look(cold)
    card = page.get_by_role("region", name="GPU 0 of desk")
    expect(card).to_contain_text(f"{LOST}, for ")
    expect(card).to_contain_text("free 0")
    assert not violations_in_themes(page)
    assert not sideways(page)
    shot(page, "overview")
    page.goto(page.url.rstrip("/") + "/queues")
    worker = page.get_by_role("article", name="worker desk")
    unit = worker.get_by_role("listitem").filter(has_text="gpu 0")
    expect(unit).to_contain_text("0 of 1 free")
    expect(unit).to_contain_text(f"{LOST}, for ")
    assert not sideways(page)
    shot(page, "queues")
    gpus.mend(0)
    works = "the GPU is not found to work"
    until(lambda: "it works for" in cold.ok("gpu"), works, bool)
    page.goto(page.url.removesuffix("queues"))
    expect(card).to_contain_text("it works again for")
    shot(page, "works")
    card.get_by_role("button", name="Use it again").click()
    expect(card).not_to_contain_text(LOST)
    expect(card).to_contain_text("free 79.5G")
