"""The page of one job: what it is, what it used, why it waits, and its verbs."""

import shlex

import pytest
from playwright.sync_api import Page, expect

from grass.verbs.calling import Caller
from grass.verbs.task_jobs import calls_of, enqueue_tasks, read_result
from tests.support.browser import (
    PHONE,
    Look,
    sideways,
    violations,
    violations_in_themes,
)
from tests.support.homes import GrassHome

pytestmark = [pytest.mark.daemon, pytest.mark.browser]


def menu(page: Page, item: str) -> None:
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name=item).click()


def test_the_log_comes_first_and_details_are_a_tab_away(
    look: Look, box: GrassHome
) -> None:
    job = box.enqueue("--name", "<b>fit</b>", "--", "sh", "-c", "echo said; exit 3")
    box.wait(job)
    page = look(box, f"/jobs/{job}")
    expect(page.get_by_role("heading", name="<b>fit</b>")).to_be_visible()
    expect(page.get_by_text("said", exact=True)).to_be_visible()
    expect(page.get_by_text("exit 3").first).to_be_visible()
    page.get_by_role("tab", name="Details").click()
    expect(page.get_by_text("sh -c 'echo said; exit 3'")).to_be_visible()
    expect(page.get_by_text("enqueued", exact=False).first).to_be_visible()
    assert "tab=details" in page.url
    assert violations(page) == []


def test_a_job_that_waits_says_why_and_is_cancelled(look: Look, box: GrassHome) -> None:
    job = box.enqueue("--hold", "--", "true")
    page = look(box, f"/jobs/{job}")
    expect(page.get_by_text("held", exact=True).first).to_be_visible()
    menu(page, "Cancel")
    page.get_by_role("button", name=f"Cancel job {job}").click()
    expect(page.get_by_text("cancelled", exact=True).first).to_be_visible()
    assert box.state(job) == "cancelled"


def test_it_runs_again_with_changes(look: Look, box: GrassHome) -> None:
    job = box.enqueue("--", "false")
    box.wait(job)
    page = look(box, f"/jobs/{job}")
    expect(page.get_by_text("failed", exact=True).first).to_be_visible()
    menu(page, "Rerun with changes")
    expect(page.get_by_role("dialog").get_by_label("Command")).to_be_focused()
    expect(page.get_by_label("Command", exact=True)).to_have_value("false")
    expect(page.get_by_label("Request", exact=True)).to_have_value("{cpu:1}")
    page.get_by_label("Command", exact=True).fill("true")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text("succeeded", exact=True).first).to_be_visible()


def test_a_function_runs_again_and_is_never_offered_as_a_command(
    look: Look, box: GrassHome
) -> None:
    with Caller(box.client.home) as client:
        added = enqueue_tasks(client, calls_of(abs, [((-3,), {})]), {})
    job = int(added["first"])
    box.wait(job)
    page = look(box, f"/jobs/{job}?tab=details")
    expect(page.get_by_role("heading", name="Function")).to_be_visible()
    expect(page.get_by_role("button", name="Copy as command line")).to_have_count(0)
    page.get_by_role("button", name="Copy as Python").click()
    expect(page.locator(".toast")).to_contain_text(f"grass.jobs({job}).result()")
    menu(page, "Rerun with changes")
    expect(page.get_by_label("Command", exact=True)).to_have_count(0)
    page.get_by_label("Name", exact=True).fill("once more")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("heading", name="once more")).to_be_visible()
    box.wait(job)
    assert read_result(box.client, job) == 3


def test_a_job_that_waits_is_edited(look: Look, box: GrassHome) -> None:
    job = box.enqueue("--hold", "--", "true")
    page = look(box, f"/jobs/{job}")
    menu(page, "Edit")
    page.get_by_label("Name", exact=True).fill("renamed")
    page.get_by_label("Priority", exact=True).fill("7")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("heading", name="renamed")).to_be_visible()
    assert box.client.job(job)["priority"] == 7
    menu(page, "Edit")
    page.get_by_label("Queue", exact=True).fill("nowhere")
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("nowhere")


def test_a_running_job_is_sent_a_signal(look: Look, box: GrassHome) -> None:
    job = box.enqueue("-c", "0", "--", "sleep", "1000")
    page = look(box, f"/jobs/{job}")
    expect(page.get_by_text("running", exact=True).first).to_be_visible()
    menu(page, "Send SIGTERM")
    page.get_by_role("button", name=f"Send SIGTERM job {job}").click()
    expect(page.get_by_text("SIGTERM").first).to_be_visible()
    box.wait(job)
    assert box.client.job(job)["attempts"][0]["signal"] == 15


def test_keys_show_the_log_and_the_actions(look: Look, box: GrassHome) -> None:
    job = box.enqueue("--hold", "--env", "LR=0.1", "--env", "SEED=7", "--", "true")
    page = look(box, f"/jobs/{job}?tab=details")
    expect(page.get_by_text("LR SEED added or changed")).to_be_visible()
    page.keyboard.press("l")
    expect(page.get_by_role("tab", name="Log")).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press(".")
    expect(page.get_by_role("menuitem", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)


COPIED = """async (job) => {
  const form = await import("/app/job_form.mjs");
  return form.asCommand(form.draftOf(job), form.ownWords(job));
}"""
SAME = (
    *("name", "project", "queue", "command", "shell", "request", "priority"),
    *("cwd", "time_limit_s", "after"),
)


@pytest.mark.parametrize(
    "words",
    [
        ("--", "echo it's; exit 3"),
        ("--name", "a b", "--priority", "-3", "pre", "--", "--flag", "two words", ""),
        ("-c", "2", "-m", "1G", "--cwd", "/tmp", "--time-limit", "90", "--", "true"),
    ],
)
def test_the_command_that_is_copied_adds_the_same(
    page: Page, box: GrassHome, words: tuple[str, ...]
) -> None:
    box.ok("create-queue", "pre", "echo", "-n")
    first = box.enqueue("--hold", "--", "true")
    job = box.client.job(box.enqueue("--hold", "--after", str(first), *words))
    text = page.evaluate(COPIED, job)
    again = box.client.job(box.enqueue("--hold", *shlex.split(text)[2:]))
    assert {name: again[name] for name in SAME} == {name: job[name] for name in SAME}


def test_a_shell_line_runs_again_as_it_was_written(look: Look, box: GrassHome) -> None:
    job = box.enqueue("--", "echo it; exit 3")
    box.wait(job)
    page = look(box, f"/jobs/{job}")
    menu(page, "Rerun with changes")
    command = page.get_by_label("Command", exact=True)
    expect(command).to_have_value("echo it; exit 3")
    command.fill("echo it; exit 0")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text("succeeded", exact=True).first).to_be_visible()


def test_what_it_uses_is_drawn_while_it_runs(look: Look, box: GrassHome) -> None:
    job = box.enqueue("--", "sleep", "1000")
    page = look(box, f"/jobs/{job}?tab=usage")
    expect(page.get_by_role("region", name="Memory", exact=True)).to_be_visible()
    # It asked for a core, and for no memory at all.
    cores = page.get_by_role("region", name="Cores", exact=True)
    expect(cores.get_by_text("asked", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Details").click()
    expect(page.get_by_role("heading", name="Asked, given, used")).to_be_visible()


def test_the_limit_of_a_chart_is_called_given_where_nothing_was_asked_for(
    look: Look, box: GrassHome
) -> None:
    job = box.enqueue("-g", "0.5", "use-gpu", "2G")
    page = look(box, f"/jobs/{job}?tab=usage")
    memory = page.get_by_role("region", name="Memory of GPU")
    expect(memory.get_by_text("given", exact=True)).to_be_visible()
    expect(memory.get_by_text("asked", exact=True)).to_have_count(0)


def test_a_job_that_is_not_there_says_so(look: Look, box: GrassHome) -> None:
    page = look(box, "/jobs/999999")
    expect(page.get_by_text("There is no such job")).to_be_visible()


def test_it_is_accessible_and_fits_a_phone(look: Look, box: GrassHome) -> None:
    job = box.enqueue("--", "echo", "said")
    box.wait(job)
    page = look(box, f"/jobs/{job}", viewport=PHONE)
    expect(page.get_by_text("said", exact=True)).to_be_visible()
    assert violations_in_themes(page) == []
    assert not sideways(page)
