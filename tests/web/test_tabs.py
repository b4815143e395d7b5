"""Several tabs of one browser, which has six connections to a host for all of them."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Look
from tests.support.homes import GrassHome

pytestmark = [pytest.mark.daemon, pytest.mark.browser]

STREAMED = re.compile("^Live: updated as it happens")
LIVE = re.compile("^Live")
HIDE = """() => {
  Object.defineProperty(document, "hidden", { get: () => true, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
SHOW = """() => {
  delete document.hidden;
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def expect_running(page: Page, number: int) -> None:
    jobs = page.get_by_role("group", name="jobs")
    expect(jobs.get_by_role("link", name=f"{number} running")).to_be_visible()


def streamed(tabs: list[Page]) -> list[Page]:
    """Return the tabs that have a stream; in the others the badge says otherwise."""
    return [tab for tab in tabs if tab.get_by_role("button", name=STREAMED).count()]


@pytest.mark.timeout(300)
def test_seven_tabs_are_live_and_leave_room_for_calls(
    look: Look, box: GrassHome
) -> None:
    # Without a view: the counts of jobs alone are followed, which costs least.
    tabs = [look(box, "/nowhere")]
    for _ in range(6):
        tabs.append(tabs[0].context.new_page())
        tabs[-1].goto(tabs[0].url, wait_until="commit")
    for tab in tabs:
        expect(tab.get_by_role("button", name=LIVE)).to_be_visible()
    box.enqueue("-c", "0", "--", "sleep", "1000")
    for tab in tabs:
        expect_running(tab, 1)
    asked = "async () => (await fetch('/api/v1/session')).status"
    assert [tab.evaluate(asked) for tab in tabs] == [200] * 7
    with_stream = streamed(tabs)
    assert 0 < len(with_stream) < 6
    [first, *others] = [tab for tab in tabs if tab not in with_stream]
    for tab in with_stream + others:
        tab.evaluate(HIDE)
    expect(first.get_by_role("button", name=STREAMED)).to_be_visible()


def test_a_tab_that_is_shown_again_tells_what_it_has_missed(
    look: Look, box: GrassHome
) -> None:
    page = look(box, "/jobs")
    expect(page.get_by_role("button", name=STREAMED)).to_be_visible()
    page.evaluate(HIDE)
    job = box.enqueue("--name", "unseen", "-c", "0", "--", "true")
    box.wait(job)
    with page.expect_request("**/api/v1/stream?*") as asked:
        page.evaluate(SHOW)
    assert int(asked.value.headers["last-event-id"]) > 0
    row = page.get_by_role("row").filter(has_text="unseen")
    expect(row).to_contain_text("succeeded")
