"""What the dashboard was asked to hold, and where each part is tried.

1. A fresh install has useful empty views: here.
2. A job of the form shows in every tab: here; a rerun with changes in `test_job`.
3. A job that can never run says so, one that waits names the holder: here; what is
   refused at once in `test_new`.
4. A long log, live, searched and linked: `test_log`; the figures of 200 MB by
   `python -m benchmarks --only page`.
5. The filter of the command line, all that match, the count: `test_jobs`; the figures
   by the same benchmark.
6. The daemon is killed and comes back: here.
7. Two halves of a GPU, and a stranger: here, and `test_overview`.
8. Who may not is refused by every route: `tests/api/test_web_access`; a real page of
   another site in `test_login`.
9. Axe and a phone: in the tests of each view. Keys alone, and no colours: here.
10. Twenty tabs: `python -m benchmarks --only followers`; one reading serves them all in
    `tests/api/test_stream`.
"""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Look, path_at, turn_to, violations
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome

pytestmark = [pytest.mark.daemon, pytest.mark.browser]

EMPTY = {
    "/": "Nothing has run here yet",
    "/jobs": "No jobs yet",
    "/jobs/1": "There is no such job",
    "/timeline": "As a table",
    "/queues": "queue default",
    "/new": "Write a command, and see here how it is read",
    "/events": "What",
    "/doctor": "ok",
}


def live(page: Page) -> None:
    expect(page.get_by_role("button", name=re.compile("^Live"))).to_be_visible()


def row(page: Page, job: int) -> str:
    return f'tr[data-key="{job}"]'


def test_check_1_every_view_of_a_fresh_install_tells_what_to_do(
    look: Look, cold: GrassHome
) -> None:
    cold.ok("start")
    page = look(cold)
    for path, told in EMPTY.items():
        turn_to(page, path)
        live(page)
        main = page.get_by_role("main")
        labelled = main.get_by_label(told)
        expect(main.get_by_text(told).or_(labelled).first).to_be_visible()


def test_check_2_a_job_of_the_form_shows_in_another_tab(
    look: Look, box: GrassHome
) -> None:
    form = look(box, "/new")
    other = form.context.new_page()
    other.goto(path_at(form, "/jobs"))
    live(other)
    form.get_by_label("Command").fill("sleep 1000")
    form.get_by_label("Directory").fill("/")
    form.get_by_label("Name", exact=True).fill("by the form")
    form.get_by_role("button", name="Enqueue", exact=True).click()
    expect(form).to_have_url(re.compile(r"/jobs/\d+$"))
    shown = other.locator("tr[data-key]").filter(has_text="by the form")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("running")


def test_check_3_what_can_never_run_and_what_waits_say_so(
    look: Look, box: GrassHome
) -> None:
    box.client.add_capacity("{license:{'a':1}}")
    holder = box.enqueue("--name", "holder", "--require", "{license:1}", "sleep 1000")
    words = ("--require", "{license:1}", "sleep 1000")
    second = box.enqueue("--name", "second", "--priority", "1", *words)
    waits = box.enqueue("--name", "third", "--require", "{license:1}", "true")
    box.await_event("started", holder)
    page = look(box, f"/jobs/{waits}")
    why = page.locator(".explain")
    expect(why).to_contain_text("license")
    expect(why).to_contain_text("needs 1, has 0")
    expect(why.get_by_role("link", name=f"{holder} holder")).to_be_visible()
    # It needs the same as before, which another job holds now.
    box.ok("cancel", str(holder))
    expect(why.get_by_role("link", name=f"{second} second")).to_be_visible()
    expect(why.get_by_role("link", name=f"{holder} holder")).to_have_count(0)
    box.ok("cancel", str(second))
    box.wait(waits)
    stuck = box.enqueue("--hold", "--require", "{license:1}", "true")
    box.client.remove_capacity("license:a")
    box.ok("release", str(stuck))
    told = box.client.explain(stuck)
    turn_to(page, f"/jobs/{stuck}")
    expect(why).to_contain_text(told["why"])
    assert told["why"] in box.ok("explain", str(stuck))
    assert "license" in told["why"]


def test_check_6_a_page_heals_when_the_daemon_is_back(
    look: Look, cold: GrassHome
) -> None:
    cold.ok("start")
    ids = [cold.enqueue("-c", "0", "--", "true") for _ in range(2)]
    cold.enqueue("--name", "long", "-c", "0", "--", "sleep", "1000")
    cold.wait(*ids)
    page = look(cold, "/jobs")
    overview = page.context.new_page()
    overview.goto(path_at(page, "/"))
    rows = page.locator("tr[data-key]")
    running = overview.get_by_role("region", name="Running").get_by_role("listitem")
    expect(rows).to_have_count(3)
    expect(running).to_have_count(1)
    cold.kill_daemon()
    for one in (page, overview):
        offline = one.get_by_role("button", name=re.compile("^Offline since"))
        expect(offline).to_be_visible()
        expect(one.get_by_text(re.compile(r"This is how it was \d+"))).to_be_visible()
    expect(running).to_have_count(1)
    assert violations(overview) == []
    cold.ok("start")
    late = cold.enqueue("--hold", "--", "true")
    for one in (page, overview):
        live(one)
        expect(one.get_by_text("The daemon does not answer.")).to_have_count(0)
    expect(page.locator(row(page, late))).to_be_visible()
    expect(rows).to_have_count(4)
    expect(running).to_have_count(1)


def test_check_7_each_half_of_a_gpu_shows_its_own_use(
    look: Look, cold: GrassHome, gpus: FakeGpus
) -> None:
    gpus.device(0, memory="80G", utilization=70)
    cold.environment.update(gpus.environment)
    gpus.program(cold)
    cold.ok("start")
    uses = {"8": "20", "16": "60"}
    halves = {
        size: cold.enqueue("-g", "0.5", "-c", "0", "use-gpu", f"{size}G", percent)
        for size, percent in uses.items()
    }
    with gpus.stranger(0, "12G"):
        page = look(cold)
        card = page.get_by_role("region", name=re.compile("^GPU 0 of"))
        for size, job in halves.items():
            on = card.get_by_role("listitem").filter(has_text=f"{job} use-gpu")
            expect(on).to_contain_text(f"{size}G")
        expect(card.get_by_text("stranger", exact=True)).to_be_visible()
        expect(card).to_contain_text("12G")
        for size, job in halves.items():
            turn_to(page, f"/jobs/{job}?tab=details")
            table = page.get_by_role("group", name="asked, given, used")
            use = table.get_by_role("row", name=re.compile("^gpu 0 utilization"))
            expect(use).to_contain_text(f"{uses[size]} %")


def test_check_9_a_job_is_added_watched_and_ended_by_keys_alone(
    look: Look, box: GrassHome
) -> None:
    page = look(box)
    live(page)
    page.keyboard.press("n")
    command = page.get_by_label("Command")
    until_focused(page, "Command")
    expect(command).to_be_focused()
    page.keyboard.type("echo typed; sleep 1000")
    until_focused(page, "Directory")
    page.keyboard.type("/")
    expect(page.get_by_text("1 job would be enqueued")).to_be_visible()
    enqueue = page.get_by_role("button", name="Enqueue", exact=True)
    expect(enqueue).to_be_enabled()
    until_focused(page, "Enqueue")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))
    job = int(page.url.rsplit("/", 1)[1])
    expect(page.get_by_role("log")).to_contain_text("typed")
    until_focused(page, "Actions")
    page.keyboard.press("Enter")
    expect(page.get_by_role("menu")).to_be_visible()
    page.keyboard.press("k")
    expect(page.get_by_role("dialog")).to_be_visible()
    until_focused(page, f"Kill now job {job}")
    page.keyboard.press("Enter")
    expect(page.get_by_text("cancelled", exact=True).first).to_be_visible()
    assert box.wait(job)["state"] == "cancelled"


def until_focused(page: Page, name: str) -> None:
    """Press Tab until what has this label, or says this, has the focus."""
    focused = """name => {
      const one = document.activeElement;
      const label = one.labels?.[0]?.textContent ?? one.textContent;
      return label.trim() === name;
    }"""
    for _press in range(80):
        if page.evaluate(focused, name):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no Tab comes to {name}")


def test_check_9_states_differ_without_colours(look: Look, box: GrassHome) -> None:
    jobs = {
        "succeeded": box.enqueue("-c", "0", "--", "true"),
        "failed": box.enqueue("-c", "0", "--", "false"),
        "running": box.enqueue("-c", "0", "--", "sleep", "1000"),
        "held": box.enqueue("--hold", "--", "true"),
        "cancelled": box.enqueue("--hold", "--", "true"),
        "queued": box.enqueue("-g", "2", "-c", "0", "--hold", "--", "true"),
    }
    box.client.pause()
    box.ok("release", str(jobs["queued"]))
    box.ok("cancel", str(jobs["cancelled"]))
    box.await_event("started", jobs["running"])
    box.wait(jobs["succeeded"], jobs["failed"])
    page = look(box, "/jobs")
    shapes = set()
    for state, job in jobs.items():
        mark = page.locator(row(page, job)).locator("td .state").first
        expect(mark.get_by_text(state, exact=True)).to_be_visible()
        shapes.add(mark.locator("path").get_attribute("d"))
    assert len(shapes) == len(jobs)
