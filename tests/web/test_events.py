"""The journal on the page."""

import pytest
from playwright.sync_api import expect

from tests.support.browser import Look, violations
from tests.support.homes import GrassHome

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
