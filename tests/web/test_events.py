"""The journal on the page."""

import pytest
from playwright.sync_api import APIResponse, Route, expect

from tests.support.browser import Look, violations
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = [pytest.mark.daemon, pytest.mark.browser]


def test_events_come_as_they_happen_and_are_filtered(
    look: Look, box: GrassHome
) -> None:
    job = box.enqueue("--hold", "--", "true")
    page = look(box, "/events")
    rows = page.get_by_role("table", name="events").get_by_role("row")
    expect(rows.filter(has_text="enqueued").first).to_contain_text(str(job))
    box.ok("release", str(job))
    expect(rows.filter(has_text="released").first).to_contain_text(str(job))
    page.get_by_label("Kind").fill("released")
    page.get_by_label("Kind").press("Enter")
    expect(rows.filter(has_text="released")).not_to_have_count(0)
    kinds = page.get_by_role("table", name="events").locator("td.event-kind")
    expect(kinds.filter(has_not_text="released")).to_have_count(0)
    assert "kind=released" in page.url
    page.get_by_role("button", name="Clear").click()
    expect(rows.filter(has_text="enqueued")).not_to_have_count(0)
    assert violations(page) == []


def test_what_is_typed_stays_while_events_come(look: Look, box: GrassHome) -> None:
    page = look(box, "/events")
    page.get_by_label("Kind").fill("fini")
    job = box.enqueue("--hold", "--", "true")
    row = page.get_by_role("row").filter(has_text="enqueued")
    expect(row.filter(has=page.get_by_role("link", name=str(job)))).to_be_visible()
    expect(page.get_by_label("Kind")).to_have_value("fini")


def test_an_event_that_comes_while_the_journal_is_read_stays(
    look: Look, box: GrassHome
) -> None:
    box.enqueue("--hold", "--name", "before", "--", "true")
    page = look(box, "/doctor")
    held = list[tuple[Route, APIResponse]]()
    page.route("**/api/v1/events?*", lambda route: held.append((route, route.fetch())))
    page.get_by_role("link", name="Events").first.click()
    until(lambda: page.evaluate("true") and held, "the journal was not read")
    job = box.enqueue("--hold", "--", "true")
    row = page.get_by_role("row").filter(has_text="enqueued")
    come = row.filter(has=page.get_by_role("link", name=str(job), exact=True))
    expect(come).to_be_visible()
    for route, response in held:
        route.fulfill(response=response)
    expect(row).not_to_have_count(1)
    expect(come).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")


def test_a_start_tells_the_units(look: Look, box: GrassHome) -> None:
    job = box.enqueue("-g", "0.5", "-c", "0", "--", "true")
    box.wait(job)
    page = look(box, f"/events?job={job}")
    started = page.get_by_role("row").filter(has_text="started")
    expect(started).to_contain_text("gpu:0(0.5)")
