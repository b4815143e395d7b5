"""The overview: GPUs, what runs, what is next, and what failed."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import (
    PHONE,
    Look,
    sideways,
    violations,
    violations_in_themes,
)
from tests.support.fifo import Fifo
from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

pytestmark = [pytest.mark.daemon, pytest.mark.browser]

BLOCKED = ("-c", "0", "--require", "{gpu:2}", "--", "true")


def section(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title, exact=True)


def rows(page: Page, title: str) -> Locator:
    return section(page, title).get_by_role("listitem")


def await_running(home: GrassHome, job: int) -> None:
    until(lambda: home.state(job), "it never ran", lambda state: state == "running")


def test_a_gpu_tells_its_memory_and_who_is_on_it(page: Page, box: GrassHome) -> None:
    ids = [box.enqueue("--name", "half", "-g", "0.5", "use-gpu", "8G") for _ in "ab"]
    card = section(page, f"GPU 0 of {box.client.overview()['workers'][0]['name']}")
    for id in ids:
        row = card.get_by_role("listitem").filter(has_text=f"{id} half")
        expect(row).to_contain_text("0.5")
        expect(row).to_contain_text("8G")
    expect(card.get_by_role("img", name=re.compile("^memory of"))).to_have_attribute(
        "aria-label", re.compile("jobs 16G")
    )
    expect(rows(page, "Running").filter(has_text=f"{ids[0]} half")).to_contain_text(
        "gpu:0(0.5)"
    )


def test_what_waits_says_why(page: Page, box: GrassHome) -> None:
    runs = box.enqueue("-g", "2", "-c", "0", "--", "sleep", "1000")
    waits = box.enqueue("--name", "second", *BLOCKED)
    row = rows(page, "Next up").filter(has_text=f"{waits} second")
    expect(row).to_contain_text("needs gpu 2, free 0 of 2")
    box.ok("cancel", str(runs))
    expect(row).to_have_count(0)


def test_a_failure_shows_its_last_line(page: Page, box: GrassHome) -> None:
    text = "<img src=x onerror=alert(1)> is out of range"
    job = box.enqueue("-c", "0", "--", "sh", "-c", f"echo '{text}'; exit 3")
    row = rows(page, "Last failures").filter(has_text=str(job))
    expect(row).to_contain_text("exit 3")
    expect(row.get_by_text(text)).to_be_visible()


def test_the_last_failure_comes_first(page: Page, box: GrassHome, gate: Fifo) -> None:
    late = box.enqueue("-c", "0", "--", "sh", "-c", f"read x < {gate}; exit 3")
    early = box.enqueue("-c", "0", "--", "sh", "-c", "exit 4")
    box.wait(early)
    failed = rows(page, "Last failures")
    expect(failed).to_have_count(1)
    gate.tell()
    box.wait(late)
    expect(failed).to_have_count(2)
    expect(failed.first).to_contain_text("exit 3")


def test_rows_keep_their_places_under_the_pointer(page: Page, box: GrassHome) -> None:
    first = box.enqueue("--name", "first", "-c", "0", "--", "sleep", "1000")
    shown = rows(page, "Running")
    expect(shown).to_have_count(1)
    shown.first.hover()
    box.enqueue("--name", "second", "-c", "0", "--priority", "9", "--", "sleep", "1000")
    chip = page.get_by_role("button", name="1 update waiting")
    expect(chip).to_be_visible()
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text(f"{first} first")
    page.get_by_role("heading", name="Overview").hover()
    expect(shown).to_have_count(2)
    expect(chip).to_have_count(0)


def test_a_row_that_stays_says_how_its_job_ended(page: Page, box: GrassHome) -> None:
    job = box.enqueue("--name", "long", "-c", "0", "--", "sleep", "1000")
    row = rows(page, "Running").filter(has_text=f"{job} long")
    row.hover()
    box.ok("cancel", str(job))
    expect(row).to_contain_text("cancelled")
    page.get_by_role("heading", name="Overview").hover()
    expect(row).to_have_count(0)


def test_what_waits_to_be_shown_comes_by_the_chip(page: Page, box: GrassHome) -> None:
    box.enqueue("--name", "first", "-c", "0", "--", "sleep", "1000")
    shown = rows(page, "Running")
    shown.first.hover()
    box.enqueue("--name", "second", "-c", "0", "--", "sleep", "1000")
    page.get_by_role("button", name="1 update waiting").click()
    expect(shown).to_have_count(2)


def test_a_job_is_cancelled_by_keys_alone(page: Page, box: GrassHome) -> None:
    job = box.enqueue("--name", "long", "-c", "0", "--", "sleep", "1000")
    await_running(box, job)
    row = rows(page, "Running").filter(has_text=f"{job} long")
    expect(row).to_be_visible()
    page.keyboard.press("j")
    expect(row.get_by_role("link")).to_be_focused()
    page.keyboard.press(".")
    expect(page.get_by_role("menu", name=f"actions on job {job}")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_role("dialog", name="Cancel?")).to_contain_text(f"job {job}")
    expect(page.get_by_role("button", name="Keep")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"job {job} cancelled")).to_be_visible()
    box.wait(job)
    assert box.state(job) == "cancelled"


def test_who_may_only_look_is_offered_nothing(look: Look, box: GrassHome) -> None:
    box.enqueue("--name", "long", "-c", "0", "--", "sleep", "1000")
    page = look(box, role="read")
    expect(rows(page, "Running")).to_have_count(1)
    expect(page.get_by_role("button", name=re.compile("^actions on"))).to_have_count(0)
    expect(page.get_by_role("link", name="New job")).to_have_count(0)


def test_a_first_visit_says_what_to_type(look: Look, cold: GrassHome) -> None:
    cold.ok("start")
    page = look(cold)
    steps = section(page, "first steps")
    plain = steps.get_by_text("grass enqueue -- python train.py", exact=True)
    expect(plain).to_be_visible()
    expect(
        page.get_by_text(re.compile("no (NVIDIA )?GPU", re.IGNORECASE)).first
    ).to_be_visible()
    assert violations(page) == []
    for command in steps.get_by_role("code").all_inner_texts():
        tried = cold.shell(command.replace("enqueue", "enqueue --dry-run"))
        assert tried.returncode == 0, tried.stderr
    cold.enqueue("-c", "0", "--", "true")
    expect(steps).to_have_count(0)


def test_axe_finds_nothing(look: Look, cold: GrassHome, gpus: FakeGpus) -> None:
    gpus.device(0, utilization=70)
    cold.environment.update(gpus.environment)
    gpus.program(cold)
    cold.ok("start")
    failed = cold.enqueue("-c", "0", "--", "sh", "-c", "echo no; exit 1")
    cold.wait(failed)
    cold.enqueue("--name", "whole", "-g", "1", "--time-limit", "8h", "use-gpu", "9G")
    cold.enqueue("--name", "next", "-g", "1", "use-gpu", "9G")
    cold.enqueue("--hold", "--", "true")
    with gpus.stranger(0, "12G"):
        page = look(cold)
        expect(rows(page, "Running")).to_have_count(1)
        expect(page.get_by_text("stranger", exact=True)).to_be_visible()
        expect(rows(page, "Next up")).to_have_count(2)
        assert violations_in_themes(page) == []
        page.set_viewport_size(PHONE)
        assert violations(page) == []
        assert sideways(page) == 0
