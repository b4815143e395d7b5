"""Queues and workers by the page: limits, order, units."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import PHONE, Look, sideways, violations_in_themes
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = [pytest.mark.daemon, pytest.mark.browser]


@pytest.fixture
def queues(look: Look, box: GrassHome) -> Page:
    return look(box, "/queues")


def starts(box: GrassHome, queue: str) -> list[int]:
    """Return the jobs of a queue that wait, in the order of their starts."""
    waiting = list(box.client.jobs(states=["queued"], queue=queue))
    ordered = sorted(waiting, key=lambda job: (-job["priority"], job["id"]))
    return [job["id"] for job in ordered]


def test_a_queue_is_made_limited_paused_and_deleted(
    queues: Page, box: GrassHome
) -> None:
    queues.get_by_role("button", name="New queue").click()
    queues.get_by_label("Name", exact=True).fill("by-page")
    queues.get_by_label("Units of this machine").fill("{gpu:")
    queues.get_by_role("button", name="Create").click()
    expect(queues.get_by_role("alert")).to_be_visible()
    queues.get_by_label("Units of this machine").fill("{gpu:{'0':1}}")
    queues.get_by_role("button", name="Create").click()
    card = queues.get_by_role("article", name="queue by-page")
    expect(card).to_contain_text("gpu:0")

    card.get_by_role("button", name="actions of by-page").click()
    card.get_by_role("menuitem", name="Change its limits").click()
    queues.get_by_label("Running at most").fill("3")
    queues.get_by_role("button", name="Change", exact=True).click()
    expect(card).to_contain_text("of at most 3")

    card.get_by_role("button", name="actions of by-page").click()
    card.get_by_role("menuitem", name="Pause").click()
    expect(card).to_contain_text("paused")
    card.get_by_role("button", name="actions of by-page").click()
    card.get_by_role("menuitem", name="Delete").click()
    queues.get_by_role("button", name="Delete queue by-page").click()
    expect(card).to_have_count(0)


SITE = """
max_workers = 2
time = "10m"
[submit]
command = ["echo", "queued as job 812", "{mark}"]
script = "exec {command}"
id = 'job (\\d+)'
[status]
command = ["printf", "ID\\n812 waits another\\n"]
answer = '^ID'
id = '^(\\d+) '
state = '^\\d+ (\\w+)'
mark = ' (\\w+)$'
[states]
pending = ["waits"]
running = ["runs"]
ended = ["over"]
[cancel]
command = ["true", "{ids}"]
"""


def test_a_pool_is_shown_paused_and_chosen_for_a_job(
    look: Look, cold: GrassHome, tmp_path: Path
) -> None:
    (tmp_path / "site.toml").write_text(SITE)
    cold.ok("start", "--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker")
    site, folder = tmp_path / "site.toml", tmp_path / "pilots"
    cold.ok("pool", "add", "uni", f"--file={site}", f"--folder={folder}")
    cold.enqueue("true")
    page = look(cold, "/queues")
    card = page.get_by_role("article", name="pool uni")
    expect(card).to_contain_text("job 812")
    expect(card).to_contain_text("0 of at most 2 workers")
    card.get_by_role("button", name="actions of uni").click()
    card.get_by_role("menuitem", name="Pause").click()
    expect(card).to_contain_text("paused")
    assert cold.client.pools()["pools"][0]["paused"]
    page = look(cold, "/new")
    page.get_by_label("Command").fill("echo hello")
    page.get_by_label("Directory").fill("/")
    page.get_by_label("Pool").select_option("uni")
    page.get_by_role("button", name="Enqueue").click()
    job = until(
        lambda: list(cold.client.jobs()), "nothing is enqueued", lambda x: len(x) == 2
    )
    assert [one["pool"] for one in job] == [None, "uni"]


def test_the_order_is_changed_by_keys_and_by_dragging(
    queues: Page, box: GrassHome
) -> None:
    box.ok("pause", "default")
    first, second, third = (box.enqueue("--", "true") for _ in range(3))
    card = queues.get_by_role("article", name="queue default")
    card.get_by_role("button", name="Show the order").click()
    rows = card.get_by_role("list", name="order of default").get_by_role("listitem")
    expect(rows).to_have_count(3)
    rows.nth(2).focus()
    queues.keyboard.press("Alt+ArrowUp")
    wanted = [first, third, second]
    until(lambda: starts(box, "default"), "not moved", lambda it: it == wanted)
    expect(rows.nth(1)).to_contain_text(str(third))
    rows.nth(2).drag_to(rows.nth(0))
    wanted = [second, first, third]
    until(lambda: starts(box, "default"), "not moved", lambda it: it == wanted)
    box.ok("resume", "default")


def test_a_dragged_job_is_the_one_that_moves_when_others_leave(
    queues: Page, box: GrassHome
) -> None:
    box.ok("pause", "default")
    first, second, third, fourth = (box.enqueue("--", "true") for _ in range(4))
    card = queues.get_by_role("article", name="queue default")
    card.get_by_role("button", name="Show the order").click()
    rows = card.get_by_role("list", name="order of default").get_by_role("listitem")
    expect(rows).to_have_count(4)
    rows.nth(2).hover()
    queues.mouse.down()
    rows.nth(1).hover()
    rows.nth(1).hover()
    box.ok("cancel", str(first))
    expect(card.get_by_role("button", name="1 update waiting")).to_be_visible()
    rows.nth(1).hover()
    queues.mouse.up()
    wanted = [third, second, fourth]
    until(lambda: starts(box, "default"), "not moved", lambda it: it == wanted)
    expect(rows).to_have_count(3)
    box.ok("resume", "default")


def test_units_are_added_drained_and_removed(queues: Page, box: GrassHome) -> None:
    card = queues.get_by_role("article", name="worker ")
    card.get_by_role("button", name="actions of ").first.click()
    card.get_by_role("menuitem", name="Add units").click()
    queues.get_by_label("Units", exact=True).fill("{license:{'a':1}}")
    queues.get_by_role("button", name="Add", exact=True).click()
    expect(card).to_contain_text("license a")
    card.get_by_role("button", name="actions of license a").click()
    card.get_by_role("menuitem", name="Drain").click()
    expect(card).to_contain_text("drained")
    card.get_by_role("button", name="actions of license a").click()
    card.get_by_role("menuitem", name="Remove").click()
    queues.get_by_role("button", name="Remove unit").click()
    expect(card).not_to_contain_text("license a")


def test_a_reader_is_offered_nothing(look: Look, box: GrassHome) -> None:
    page = look(box, "/queues", role="read")
    expect(page.get_by_role("article", name="queue default")).to_be_visible()
    expect(page.get_by_role("button", name="New queue")).to_have_count(0)
    expect(page.get_by_role("button", name="actions of default")).to_have_count(0)


def test_it_is_accessible_and_fits_a_phone(look: Look, box: GrassHome) -> None:
    page = look(box, "/queues", viewport=PHONE)
    expect(page.get_by_role("article", name="queue default")).to_be_visible()
    assert violations_in_themes(page) == []
    assert not sideways(page)
