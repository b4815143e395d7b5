"""The list of jobs: filter, order, columns, groups, selection, verbs, exports."""

import csv
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import (
    DESKTOP,
    PHONE,
    Look,
    sideways,
    turn_to,
    violations,
    violations_in_themes,
)
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = [pytest.mark.daemon, pytest.mark.browser]

HELD = ("--hold", "-c", "0")
MANY_COLUMNS = [
    "state",
    "name",
    "queue",
    "project",
    "owner",
    "priority",
    "request",
    "units",
    "worker",
    "waited",
    "ran",
    "created",
    "started",
    "finished",
    "exit",
    "pid",
    "attempts",
    "command",
    "reason",
]


@pytest.fixture
def jobs(look: Look, box: GrassHome) -> Page:
    return look(box, "/jobs")


def row(page: Page, job: int) -> Locator:
    return page.locator(f'tr[data-key="{job}"]')


def shows(page: Page, wanted: list[int]) -> None:
    """Wait until these rows are shown, in this order."""
    rows = "[...document.querySelectorAll('tr[data-key]')].map(row => +row.dataset.key)"
    page.wait_for_function(f"wanted => `${{{rows}}}` === `${{wanted}}`", arg=wanted)


def write_filter(page: Page, text: str) -> None:
    page.get_by_role("combobox", name="filter jobs").fill(text)


def hold_three(box: GrassHome) -> list[int]:
    """Enqueue three jobs that do not start, in a project of their own."""
    options = (*HELD, "--project", "trio")
    return [box.enqueue("--name", name, *options, "true") for name in ("b", "c", "a")]


def test_a_new_job_shows_and_its_state_follows(jobs: Page, box: GrassHome) -> None:
    job = box.enqueue("--name", "ablation", *HELD, "true")
    expect(row(jobs, job)).to_contain_text("ablation")
    expect(row(jobs, job)).to_contain_text("held")
    box.ok("release", str(job))
    expect(row(jobs, job)).to_contain_text("succeeded")


def test_the_filter_means_what_the_command_line_means(
    jobs: Page, box: GrassHome
) -> None:
    trio = hold_three(box)
    other = box.enqueue("--name", "zeta", *HELD, "true")
    expect(row(jobs, other)).to_be_visible()
    for text, meant in {
        "@trio": trio,
        f"{trio[0]}-{other} name~^zet name~^b": [trio[0], other],
        f"state:failed all @trio {trio[1]}-{other}": trio[1:],
        "state:held": [*trio, other],
    }.items():
        write_filter(jobs, text)
        told = box.ok("show", *text.split(), "--all", "-q").split()
        assert sorted(map(int, told)) == meant
        shows(jobs, meant[::-1])
    expect(jobs).to_have_url(re.compile("select=state%3Aheld"))


def test_a_word_is_suggested_and_a_wrong_one_refused(
    jobs: Page, box: GrassHome
) -> None:
    trio = hold_three(box)
    expect(row(jobs, trio[0])).to_be_visible()
    write_filter(jobs, "tri")
    jobs.get_by_role("option", name="@trio").click()
    expect(jobs).to_have_url(re.compile("select=%40trio"))
    write_filter(jobs, "state:broken")
    jobs.keyboard.press("Enter")
    expect(jobs.get_by_role("alert")).to_contain_text("there is no state `broken`")
    write_filter(jobs, "@nobody")
    expect(jobs.get_by_text(re.compile("^0 of "))).to_be_visible()
    jobs.get_by_role("button", name="Clear the filter", exact=True).click()
    expect(row(jobs, trio[0])).to_be_visible()


def test_headers_sort_and_columns_are_chosen(jobs: Page, box: GrassHome) -> None:
    trio = hold_three(box)
    write_filter(jobs, "@trio")
    shows(jobs, trio[::-1])
    jobs.get_by_role("columnheader", name="Name").get_by_role("button").click()
    shows(jobs, [trio[2], *trio[:2]])
    jobs.get_by_role("button", name="Columns").click()
    jobs.get_by_role("checkbox", name="Project").check()
    jobs.get_by_role("button", name="Done").click()
    expect(jobs.get_by_role("columnheader", name="Project")).to_be_visible()
    expect(jobs).to_have_url(re.compile("columns=.*project"))


def test_rows_are_grouped_and_a_group_is_folded(jobs: Page, box: GrassHome) -> None:
    hold_three(box)
    write_filter(jobs, "@trio")
    jobs.get_by_label("Group").select_option("name")
    group = jobs.get_by_role("rowheader", name="c 1")
    expect(group).to_be_visible()
    group.get_by_role("button").click()
    expect(jobs.locator("tr[data-key]")).to_have_count(2)


def test_a_view_is_saved_by_name(jobs: Page, box: GrassHome) -> None:
    trio = hold_three(box)
    write_filter(jobs, "@trio")
    expect(jobs).to_have_url(re.compile("trio"))
    jobs.get_by_role("button", name="Views").click()
    jobs.get_by_role("menuitem", name="Save this view").click()
    jobs.get_by_label("name of the view").fill("the three")
    jobs.get_by_role("button", name="Save", exact=True).click()
    jobs.get_by_role("button", name="clear the filter").click()
    expect(jobs).not_to_have_url(re.compile("trio"))
    jobs.reload()
    jobs.get_by_role("button", name="Views").click()
    jobs.get_by_role("menuitem", name="the three").click()
    expect(row(jobs, trio[0])).to_be_visible()
    expect(jobs).to_have_url(re.compile("trio"))


def test_a_range_of_rows_is_held_together(jobs: Page, box: GrassHome) -> None:
    trio = hold_three(box)
    expect(jobs.locator("tr[data-key]")).not_to_have_count(0)
    write_filter(jobs, "@trio")
    shows(jobs, trio[::-1])
    row(jobs, trio[2]).get_by_role("checkbox").click()
    row(jobs, trio[0]).get_by_role("checkbox").click(modifiers=["Shift"])
    bar = jobs.get_by_role("toolbar", name="selected jobs")
    expect(bar).to_contain_text("3 selected")
    bar.get_by_role("button", name="Release").click()
    jobs.get_by_role("button", name="Release 3 jobs").click()
    box.wait(*trio)
    expect(row(jobs, trio[1])).to_contain_text("succeeded")


def test_all_that_match_are_cancelled_after_their_count_was_told(
    jobs: Page, box: GrassHome
) -> None:
    many = box.enqueue_array(*HELD, "--project", "many", "--array", "1-130", "true")
    write_filter(jobs, "@many")
    expect(jobs.get_by_role("status").filter(has_text="of 130 jobs")).to_be_visible()
    jobs.keyboard.press("Enter")
    jobs.keyboard.press("Tab")
    jobs.get_by_role("checkbox", name="select all shown").click()
    bar = jobs.get_by_role("toolbar", name="selected jobs")
    bar.get_by_role("button", name="Select all 130 matching").click()
    bar.get_by_role("button", name="Cancel", exact=True).click()
    jobs.get_by_role("button", name="Cancel 130 jobs").click()
    expect(jobs.get_by_text("130 jobs cancelled")).to_be_visible()
    assert set(box.states([many[0], many[-1]])) == {"cancelled"}


def test_a_verb_for_all_that_match_spares_those_that_do_not(
    jobs: Page, box: GrassHome
) -> None:
    good = box.enqueue_array("-c", "0", "--project", "grid", "--array", "1-3", "true")
    bad = box.enqueue_array("-c", "0", "--project", "grid", "--array", "1-2", "false")
    other = box.enqueue("-c", "0", "false")
    box.wait(*good, *bad, other)
    write_filter(jobs, "@grid state:failed")
    shows(jobs, bad[::-1])
    jobs.keyboard.press("Enter")
    jobs.get_by_role("checkbox", name="select all shown").click()
    bar = jobs.get_by_role("toolbar", name="selected jobs")
    bar.get_by_role("button", name="Remove, with its output").click()
    question = jobs.get_by_role("dialog")
    expect(question).to_contain_text("2 jobs, none of them running")
    keep = question.get_by_role("button", name="Keep")
    expect(keep).to_be_focused()
    jobs.keyboard.press("Enter")
    expect(question).to_have_count(0)
    assert set(box.states(bad)) == {"failed"}
    bar.get_by_role("button", name="Remove, with its output").click()
    jobs.get_by_role("button", name="Remove, with its output 2 jobs").click()
    expect(jobs.get_by_text("2 jobs removed")).to_be_visible()
    assert box.states([*good, other]) == ["succeeded"] * 3 + ["failed"]


def test_how_many_run_is_said_before_all_that_match_are_cancelled(
    jobs: Page, box: GrassHome
) -> None:
    runs = box.enqueue("-c", "0", "--project", "mixed", "--", "sleep", "1000")
    many = box.enqueue_array(*HELD, "--project", "mixed", "--array", "1-130", "true")
    until(lambda: box.state(runs) == "running", "it does not run")
    write_filter(jobs, "@mixed all")
    expect(jobs.get_by_role("status").filter(has_text="of 131 jobs")).to_be_visible()
    jobs.keyboard.press("Enter")
    jobs.keyboard.press("Tab")
    jobs.get_by_role("checkbox", name="select all shown").click()
    bar = jobs.get_by_role("toolbar", name="selected jobs")
    bar.get_by_role("button", name="Select all 131 matching").click()
    bar.get_by_role("button", name="Cancel", exact=True).click()
    question = jobs.get_by_role("dialog")
    expect(question).to_contain_text("131 jobs, 1 of them running")
    expect(question.get_by_role("button", name="Keep")).to_be_focused()
    question.get_by_role("button", name="Cancel 131 jobs").click()
    expect(jobs.get_by_text("131 jobs cancelled")).to_be_visible()
    box.wait(runs)
    assert set(box.states([runs, many[0], many[-1]])) == {"cancelled"}


def test_two_hundred_rows_are_shown_at_a_time(jobs: Page, box: GrassHome) -> None:
    many = box.enqueue_array(*HELD, "--project", "many", "--array", "1-220", "true")
    write_filter(jobs, "@many")
    told = jobs.get_by_role("status").filter(has_text="jobs matching")
    expect(told).to_contain_text("of 220 jobs")
    row(jobs, many[-1]).get_by_role("checkbox").click()
    after = jobs.get_by_role("button", name="Rows after these")

    def scrolled() -> bool:
        jobs.evaluate("document.querySelector('.more')?.scrollIntoView()")
        return after.is_visible()

    until(scrolled, "the rows never ended")
    expect(jobs.locator("tr[data-key]")).to_have_count(200)
    after.click()
    expect(told).to_contain_text(re.compile("^201.220 of 220 jobs"))
    expect(told).to_be_focused()
    shows(jobs, many[19::-1])
    row(jobs, many[0]).get_by_role("checkbox").click()
    bar = jobs.get_by_role("toolbar", name="selected jobs")
    expect(bar).to_contain_text("2 selected")
    jobs.get_by_role("button", name="Rows before these").click()
    expect(row(jobs, many[-1])).to_have_attribute("aria-selected", "true")
    bar.get_by_role("button", name="Cancel", exact=True).click()
    jobs.get_by_role("button", name="Cancel 2 jobs").click()
    expect(jobs.get_by_text("2 jobs cancelled")).to_be_visible()
    assert set(box.states([many[-1], many[0]])) == {"cancelled"}


def test_keys_move_select_act_and_open(jobs: Page, box: GrassHome) -> None:
    trio = hold_three(box)
    write_filter(jobs, "@trio")
    shows(jobs, trio[::-1])
    jobs.keyboard.press("Enter")
    jobs.keyboard.press("Escape")
    for key in "jjx":
        jobs.keyboard.press(key)
    expect(row(jobs, trio[1])).to_have_attribute("aria-selected", "true")
    jobs.keyboard.press(".")
    bar = jobs.get_by_role("toolbar", name="selected jobs")
    expect(bar.get_by_role("button", name="Cancel", exact=True)).to_be_focused()
    row(jobs, trio[1]).focus()
    jobs.keyboard.press("Escape")
    expect(row(jobs, trio[1])).to_have_attribute("aria-selected", "false")
    jobs.keyboard.press(".")
    expect(jobs.get_by_role("menu")).to_be_visible()
    jobs.keyboard.press("e")
    expect(row(jobs, trio[1])).to_contain_text("succeeded")
    row(jobs, trio[1]).focus()
    jobs.keyboard.press("Enter")
    expect(jobs).to_have_url(re.compile(rf"/jobs/{trio[1]}$"))


def test_rows_wait_while_the_pointer_is_on_them(jobs: Page, box: GrassHome) -> None:
    trio = hold_three(box)
    shows(jobs, trio[::-1])
    row(jobs, trio[0]).hover()
    late = box.enqueue("--name", "late", *HELD, "true")
    chip = jobs.get_by_role("button", name=re.compile("waiting$"))
    expect(chip).to_have_text(re.compile("1 update waiting"))
    expect(row(jobs, late)).to_have_count(0)
    chip.click()
    expect(row(jobs, late)).to_be_visible()


@pytest.mark.parametrize("form", ["CSV", "JSON"])
def test_what_is_shown_is_exported(
    jobs: Page, box: GrassHome, tmp_path: Path, form: str
) -> None:
    trio = hold_three(box)
    write_filter(jobs, "@trio")
    shows(jobs, trio[::-1])
    jobs.get_by_role("button", name="Export").click()
    with jobs.expect_download() as download:
        jobs.get_by_role("menuitem", name=form).click()
    file = tmp_path / "jobs"
    download.value.save_as(file)
    text = file.read_text()
    rows = (
        json.loads(text) if form == "JSON" else list(csv.DictReader(text.splitlines()))
    )
    assert [int(one["id"]) for one in rows] == trio[::-1]
    assert rows[0]["name"] == "a"


def test_a_reader_is_offered_no_verbs(look: Look, box: GrassHome) -> None:
    job = box.enqueue(*HELD, "true")
    page = look(box, "/jobs", role="read")
    row(page, job).get_by_role("checkbox").click()
    bar = page.get_by_role("toolbar", name="selected jobs")
    expect(bar).to_contain_text("1 selected")
    expect(bar.get_by_role("button", name="Cancel")).to_have_count(0)


def test_a_phone_has_the_time_in_the_line_of_the_state(
    look: Look, box: GrassHome
) -> None:
    box.client.create_queue("nights-and-weekends", {"capacity": "{gpu:8,printer:9}"})
    asked = "{cpu:1,gpu:8,ram:'0.5G',printer:9}"
    words = ("nights-and-weekends", "--hold", "--require", asked, "--", "true")
    job = box.enqueue(*words)
    page = look(box, "/jobs")
    page.set_viewport_size(PHONE)
    expect(row(page, job)).to_contain_text("nights-and-weekends")
    state = row(page, job).locator(".col-state").bounding_box()
    waited = row(page, job).locator(".col-time").first.bounding_box()
    assert state is not None
    assert waited is not None
    assert (
        state["y"] <= waited["y"] + waited["height"] / 2 <= state["y"] + state["height"]
    )


def test_it_is_accessible_and_fits(look: Look, box: GrassHome) -> None:
    trio = hold_three(box)
    page = look(box, "/jobs?group=project")
    row(page, trio[0]).get_by_role("checkbox").click()
    expect(page.get_by_role("toolbar", name="selected jobs")).to_be_visible()
    assert violations_in_themes(page) == []
    for width in (1161, 1060, 901, 700):
        page.set_viewport_size({"width": width, "height": 800})
        assert not sideways(page), width
    page.set_viewport_size(PHONE)
    assert violations_in_themes(page) == []
    assert not sideways(page)
    page.set_viewport_size(DESKTOP)
    turn_to(page, f"/jobs?columns={','.join(MANY_COLUMNS)}")
    expect(page.get_by_role("columnheader", name="Command")).to_be_attached()
    assert not sideways(page)
    assert violations(page) == []
