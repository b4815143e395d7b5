"""What is around every view, in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import (
    PHONE,
    Look,
    path_at,
    sideways,
    violations,
    violations_in_themes,
)
from tests.support.homes import GrassHome

pytestmark = [pytest.mark.daemon, pytest.mark.browser]

VIEWS = {
    "Overview": "/",
    "Jobs": "/jobs",
    "Timeline": "/timeline",
    "Queues": "/queues",
    "New job": "/new",
    "Events": "/events",
    "Doctor": "/doctor",
}

CHORD = """keys => {
  for (const key of keys) {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  }
}"""


def test_every_view_is_a_link_away(page: Page) -> None:
    views = page.get_by_role("navigation", name="views", exact=True)
    for title, path in VIEWS.items():
        views.get_by_role("link", name=title).click()
        expect(page).to_have_url(path_at(page, path))
        expect(page.get_by_role("heading", level=1)).to_have_text(title)


def test_counts_follow_what_happens(page: Page, box: GrassHome) -> None:
    expect(page.get_by_role("button", name=re.compile("^Live"))).to_be_visible()
    jobs = page.get_by_role("group", name="jobs")
    before = jobs.get_by_role("link", name=re.compile(r"^\d+ running")).inner_text()
    assert before.split() == ["0", "running"]
    box.enqueue("-c", "0", "--", "sleep", "1000")
    expect(jobs.get_by_role("link", name="1 running")).to_be_visible()


def test_keys_go_to_views_and_can_be_switched_off(page: Page) -> None:
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Overview")
    # Both at once: a chord has to be quick, and a machine may be slow.
    page.evaluate(CHORD, "ge")
    expect(heading).to_have_text("Events")
    page.keyboard.press("?")
    page.get_by_label("Single letters are shortcuts").uncheck()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.evaluate(CHORD, "go")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    expect(heading).to_have_text("Events")


def test_the_palette_finds_a_job(page: Page, box: GrassHome) -> None:
    job = box.enqueue("--name", "ablation", "-c", "0", "--", "true")
    box.wait(job)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("ablat")
    expect(page.get_by_role("option", name=f"{job} ablation")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(path_at(page, f"/jobs/{job}"))


def test_the_palette_offers_no_action_that_needs_a_form(page: Page) -> None:
    expect(page.get_by_role("button", name=re.compile("^Live"))).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("queue default")
    options = page.get_by_role("option")
    expect(options.filter(has_text="Pause queue default")).to_be_visible()
    expect(options.filter(has_text="New queue")).to_have_count(0)
    expect(options.filter(has_text="limits")).to_have_count(0)
    page.get_by_role("combobox").fill("new job")
    expect(options).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(path_at(page, "/new"))


def test_updates_are_paused_and_go_on(page: Page, box: GrassHome) -> None:
    jobs = page.get_by_role("group", name="jobs")
    expect(jobs.get_by_role("link", name="0 running")).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("button", name=re.compile("^Paused"))).to_be_visible()
    box.enqueue("-c", "0", "--", "sleep", "1000")
    expect(jobs.get_by_role("link", name="0 running")).to_be_visible()
    page.keyboard.press("p")
    expect(jobs.get_by_role("link", name="1 running")).to_be_visible()


def test_a_page_without_a_stream_asks_again(page: Page, box: GrassHome) -> None:
    page.route("**/api/v1/stream?*", lambda route: route.fulfill(status=404, body=""))
    page.clock.install()
    page.reload()
    live = page.get_by_role("button", name="Live: asked every few seconds")
    expect(live).to_be_visible()
    box.await_event("started", box.enqueue("-c", "0", "--", "sleep", "1000"))
    page.clock.fast_forward(3000)
    jobs = page.get_by_role("group", name="jobs")
    expect(jobs.get_by_role("link", name="1 running")).to_be_visible()


def test_a_revoked_browser_is_told_how_to_log_in(look: Look, cold: GrassHome) -> None:
    cold.ok("start")
    cold.enqueue("--hold", "--", "true")
    page = look(cold, "/jobs")
    live = page.get_by_role("button", name=re.compile("^Live"))
    expect(live).to_be_visible()
    page.keyboard.press("p")
    expect(page.get_by_role("button", name=re.compile("^Paused"))).to_be_visible()
    page.context.clear_cookies()
    # Paused, it has no stream that could end: it asks when somebody comes back to it.
    page.evaluate("dispatchEvent(new Event('focus'))")
    expect(page.get_by_role("heading", name="You are logged out")).to_be_visible()
    expect(page.get_by_text("grass web", exact=True)).to_be_visible()
    assert violations(page) == []


def test_who_logs_out_is_logged_out_in_every_tab(look: Look, cold: GrassHome) -> None:
    cold.ok("start")
    page = look(cold)
    other, paused = [page.context.new_page() for _ in range(2)]
    live = re.compile("^Live")
    for one in (other, paused):
        one.goto(page.url)
    for one in (page, other, paused):
        expect(one.get_by_role("button", name=live)).to_be_visible()
    # One that is paused has no stream that could end.
    for one in (page, paused):
        one.keyboard.press("p")
        expect(one.get_by_role("button", name=re.compile("^Paused"))).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("log out")
    page.keyboard.press("Enter")
    for one in (page, other, paused):
        expect(one.get_by_role("heading", name="You are logged out")).to_be_visible()


def test_a_theme_is_kept(page: Page) -> None:
    root = page.locator("html")
    page.get_by_role("button", name="theme: system").click()
    page.get_by_role("button", name="theme: light").click()
    expect(root).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")


def test_axe_finds_nothing(look: Look, box: GrassHome) -> None:
    page = look(box, "/nowhere")
    expect(page.get_by_role("button", name=re.compile("^Live"))).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations_in_themes(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert violations_in_themes(page) == []


def test_a_phone_has_its_views_at_the_bottom(look: Look, box: GrassHome) -> None:
    page = look(box, viewport=PHONE)
    views = page.get_by_role("navigation", name="views on a phone")
    views.get_by_role("link", name="Jobs").click()
    expect(page).to_have_url(path_at(page, "/jobs"))
    assert sideways(page) == 0
