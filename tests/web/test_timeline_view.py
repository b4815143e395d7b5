"""Who held which unit when, on the page."""

import re

import pytest
from playwright.sync_api import expect

from tests.support.browser import PHONE, Look, sideways, violations_in_themes
from tests.support.homes import GrassHome

pytestmark = [pytest.mark.daemon, pytest.mark.browser]


def test_bars_lie_in_the_lane_of_their_gpu_and_open_their_job(
    look: Look, box: GrassHome
) -> None:
    halves = [
        box.enqueue("--name", f"half-{at}", "-g", "0.5", "--", "sleep", "1000")
        for at in range(2)
    ]
    for job in halves:
        box.await_event("started", job)
    page = look(box, "/timeline")
    bars = page.get_by_role("link", name=re.compile("half-"))
    expect(bars).to_have_count(2)
    expect(page.get_by_role("heading", name="Who used it")).to_be_visible()
    page.get_by_role("button", name="1h").click()
    expect(page).to_have_url(re.compile("span=1h"))
    page.get_by_role("button", name="earlier").click()
    expect(bars).to_have_count(0)
    page.get_by_role("button", name="Now").click()
    page.get_by_role("link", name=re.compile("half-0")).focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/jobs/{halves[0]}$"))


def test_it_is_accessible_and_fits_a_phone(look: Look, box: GrassHome) -> None:
    job = box.enqueue("-g", "1", "--", "true")
    box.wait(job)
    page = look(box, "/timeline", viewport=PHONE)
    expect(page.get_by_text("As a table")).to_be_visible()
    assert violations_in_themes(page) == []
    assert not sideways(page)
