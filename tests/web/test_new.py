"""New jobs by the page: one, and many by lines, CSV and GPUPeasy's form."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import PHONE, Look, sideways, violations_in_themes
from tests.support.homes import GrassHome

pytestmark = [pytest.mark.daemon, pytest.mark.browser]


@pytest.fixture
def empty(look: Look, box: GrassHome) -> Page:
    return look(box, "/new")


@pytest.fixture
def new(empty: Page, box: GrassHome) -> Page:
    """The form, in which the directory of jobs is filled in."""
    empty.get_by_label("Directory").fill(str(box.desk))
    return empty


def write_many(page: Page, text: str) -> None:
    page.get_by_role("tab", name="Many jobs").click()
    page.get_by_label("Jobs", exact=True).fill(text)


def test_a_job_is_shown_as_it_is_read_then_added(new: Page, box: GrassHome) -> None:
    new.get_by_label("Command").fill("echo {name} on {gpu}; exit 3")
    new.get_by_label("GPUs").fill("0.5")
    new.get_by_label("Name", exact=True).fill("made here")
    preview = new.get_by_role("region", name="what would be enqueued")
    expect(preview.get_by_role("heading")).to_have_text("1 job would be enqueued")
    expect(preview).to_contain_text("gpu 0.5")
    new.get_by_role("button", name="Enqueue", exact=True).click()
    expect(new).to_have_url(re.compile(r"/jobs/\d+$"))
    number = int(new.url.rsplit("/", 1)[1])
    job = box.wait(number)
    assert (job["name"], job["exit_code"]) == ("made here", 3)
    assert box.logs(number).startswith("made here on ")


def test_a_job_runs_where_the_form_says_and_the_next_form_has_the_same(
    empty: Page, box: GrassHome, look: Look
) -> None:
    empty.get_by_label("Command").fill("pwd")
    expect(empty.get_by_role("alert")).to_have_text(
        "where does it run? Fill in Directory"
    )
    enqueue = empty.get_by_role("button", name="Enqueue", exact=True)
    expect(enqueue).to_be_disabled()
    empty.get_by_label("Directory").fill(str(box.desk))
    enqueue.click()
    expect(empty).to_have_url(re.compile(r"/jobs/\d+$"))
    number = int(empty.url.rsplit("/", 1)[1])
    box.wait(number)
    assert box.logs(number) == f"{box.desk}\n"
    again = look(box, "/new")
    expect(again.get_by_label("Directory")).to_have_value(str(box.desk))


def test_lists_of_values_are_not_taken_for_words(new: Page) -> None:
    new.get_by_label("Command").fill("echo {} ::: 1 2 3")
    expect(new.get_by_role("alert")).to_contain_text("::: is read by grass enqueue")
    expect(new.get_by_role("button", name="Enqueue", exact=True)).to_be_disabled()
    write_many(new, "echo 1\necho {} ::: 1 2 3")
    expect(new.get_by_text("Line 2")).to_be_visible()
    new.get_by_role("tab", name="One job").click()
    new.get_by_label("Command").fill("parallel echo ::: 1 2 3")
    expect(new.get_by_text("1 job would be enqueued")).to_be_visible()


def test_what_the_daemon_refuses_is_said_in_its_words(new: Page) -> None:
    new.get_by_label("Command").fill("true")
    new.get_by_label("GPUs").fill("64")
    alert = new.get_by_role("alert")
    expect(alert).to_contain_text("gpu")
    expect(new.get_by_role("button", name="Enqueue", exact=True)).to_be_disabled()
    new.get_by_label("GPUs").fill("half")
    expect(new.get_by_text("a number such as 1 or 0.5")).to_be_visible()


def test_rows_of_gpupeasy_are_read_and_a_broken_one_is_named(
    new: Page, box: GrassHome
) -> None:
    good = "fit-a;;a.log;;echo a;;;\nfit-b;;b.log;;echo b;;;"
    new.get_by_label("Directory").fill(str(box.desk))
    write_many(new, f"{good}\nfit-c;;echo c;;;")
    expect(new.get_by_role("alert")).to_contain_text("1 row of 3 cannot be read")
    expect(new.get_by_text("Line 3")).to_be_visible()
    before = box.client.overview()["daemon"]["last_job"]
    expect(new.get_by_role("button", name=re.compile("^Enqueue"))).to_be_disabled()
    write_many(new, good)
    new.get_by_label("Directory").fill("")
    expect(new.get_by_role("alert")).to_contain_text("2 rows of 2 cannot be read")
    expect(new.get_by_text("where is a.log? Fill in Directory")).to_be_visible()
    new.get_by_label("Directory").fill(str(box.desk))
    new.get_by_role("button", name="Enqueue 2 jobs").click()
    expect(new).to_have_url(re.compile(r"/jobs$"))
    jobs = [box.wait(before + 1), box.wait(before + 2)]
    assert [job["name"] for job in jobs] == ["fit-a", "fit-b"]
    assert (box.desk / "b.log").read_text() == "b\n"


def test_a_csv_names_its_columns_and_lines_are_commands(new: Page) -> None:
    write_many(new, 'name,command\nx,"echo ""1, 2"""\ny,echo 2')
    preview = new.get_by_role("region", name="what would be enqueued")
    expect(preview).to_contain_text('echo "1, 2"')
    write_many(new, "name,command,gpu,ram\nx,echo 1,0.5,\ny,echo 2,,8G\nz,echo 3,,")
    new.get_by_label("GPUs").fill("1")
    planned = preview.get_by_role("listitem")
    expect(planned.nth(0)).to_contain_text("needs cpu 1, gpu 0.5")
    expect(planned.nth(1)).to_contain_text("needs cpu 1, gpu 1, ram 8G")
    expect(planned.nth(2)).to_contain_text("needs cpu 1, gpu 1")
    new.get_by_label("GPUs").fill("")
    write_many(new, "name,command,nodes\nx,echo 1,2\ny,echo 2,2")
    expect(preview.get_by_role("listitem")).to_have_count(1)
    expect(preview).to_contain_text("Line 1: no option is called nodes")
    write_many(new, "# a comment\necho one \\\n  two\necho three")
    expect(preview.get_by_role("heading")).to_have_text("2 jobs would be enqueued")


def test_it_is_accessible_and_fits_a_phone(look: Look, box: GrassHome) -> None:
    page = look(box, "/new", viewport=PHONE)
    page.get_by_label("Command").fill("true")
    page.get_by_label("Directory").fill(str(box.desk))
    expect(page.get_by_text("1 job would be enqueued")).to_be_visible()
    assert violations_in_themes(page) == []
    assert not sideways(page)
