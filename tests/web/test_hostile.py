"""Whatever a job is called, does and writes is text, on every view of the page.

A dialog, an error on the console, a breach of the security policy and a request to
another host fail any test with a page; here no view may have an element or a handler
that one of the texts asks for.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.browser import Look, path_at, turn_to
from tests.support.homes import GrassHome
from tests.support.hostile import (
    CODE,
    PROPERTY,
    TAGGED,
    TEXTS,
    fill,
    hostile_gpus,
    hostile_stranger,
)

pytestmark = [pytest.mark.daemon, pytest.mark.browser]

NAME = TEXTS["an element"]
PLAIN = "<img src=x hostile onerror=hostile()>"
"""Without a dot, which would make it the name of a file."""
FOUND = """() => {
  const found = [];
  if ("hostile" in window) found.push("a script ran");
  for (const one of document.querySelectorAll("*")) {
    const names = one.getAttributeNames();
    const acts = names.some((name) => name.startsWith("on") || name === "hostile");
    const odd = ["HOSTILE", "IFRAME", "OBJECT", "EMBED", "BASE"].includes(one.tagName);
    const address = one.getAttribute("href") ?? one.getAttribute("src") ?? "";
    const leads = !new URL(address, location.href).protocol.startsWith("http");
    if (acts || odd || leads) found.push(one.outerHTML.slice(0, 200));
  }
  return found;
}"""


class Place(NamedTuple):
    """A home with hostile jobs, and one of them that runs."""

    home: GrassHome
    runs: int


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("hostile")
    home = GrassHome(folder)
    gpus = hostile_gpus(folder)
    home.environment.update(gpus.environment)
    try:
        home.ok("start", "--name", PROPERTY)
        with hostile_stranger(gpus, folder):
            yield Place(home, fill(home, folder))
    finally:
        home.end()


def harmless(page: Page) -> None:
    """Nothing that a text asks for is in the page."""
    assert page.evaluate(FOUND) == []


def main(page: Page) -> Locator:
    return page.locator("main")


def go(page: Page, path: str, *shown: str) -> None:
    """Go to a view, wait for hostile texts on it, and find them harmless."""
    turn_to(page, path)
    for text in shown:
        expect(main(page)).to_contain_text(text)
    harmless(page)


def test_no_view_obeys_a_name_a_command_or_a_line(look: Look, place: Place) -> None:
    page = look(place.home)
    go(page, "/", NAME, TAGGED, "<b hostile>", "last <hostile> line", PROPERTY)
    shown = [text for text in TEXTS.values() if text.isprintable()]
    go(page, "/jobs", *shown)
    columns = "columns=name,command,directory,params,params.__proto__,worker,project"
    go(page, f"/jobs?{columns}&group=name", *shown, TAGGED)
    go(page, f"/jobs?{columns}&group=params.__proto__", *shown, TAGGED)
    job = f"/jobs/{place.runs}"
    go(page, job, NAME, "last <hostile> line", TEXTS["templates"])
    go(page, f"{job}?tab=usage", NAME, "Memory")
    go(page, f"{job}?tab=details", NAME, "cat log", "Asked, given, used")
    go(page, f"/jobs/{place.runs - 1}?tab=details", NAME, TAGGED)
    go(page, "/jobs/1", TEXTS["a script"], PROPERTY)
    go(page, "/jobs/1?tab=details", f"'{TEXTS['a script']}'")
    go(page, "/timeline", NAME)
    go(page, "/queues", PROPERTY)
    go(page, "/events", "enqueued", PROPERTY)
    go(page, "/doctor", "ok")


def test_no_form_menu_or_message_obeys_one(look: Look, place: Place) -> None:
    page = look(place.home, f"/jobs/{place.runs - 1}?tab=details")
    expect(main(page)).to_contain_text(NAME)
    page.get_by_role("button", name="Copy as command line").click()
    expect(page.locator(".toast")).to_contain_text("hostile")
    harmless(page)
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Rerun with changes").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value(NAME)
    harmless(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Remove").click()
    expect(page.get_by_role("dialog")).to_contain_text(NAME)
    harmless(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)

    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("hostile")
    expect(page.get_by_role("option").filter(has_text=NAME).first).to_be_visible()
    harmless(page)
    page.keyboard.press("Escape")

    page.goto(path_at(page, "/queues"))
    card = page.get_by_role("article", name=f"queue {PROPERTY}")
    card.get_by_role("button", name="Show the order").click()
    expect(card).to_contain_text(TEXTS["a script"])
    page.get_by_role("button", name="New queue").click()
    page.get_by_label("Name", exact=True).fill(TAGGED)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text(TAGGED)
    harmless(page)


def test_what_is_typed_into_the_form_of_new_jobs_is_text(
    look: Look, place: Place
) -> None:
    page = look(place.home, "/new")
    page.get_by_label("Command").fill(f"echo '{NAME}'")
    page.get_by_label("Directory").fill("/")
    page.get_by_label("Name", exact=True).fill(TEXTS["a script"])
    preview = page.get_by_role("region", name="what would be enqueued")
    expect(preview).to_contain_text(TEXTS["a script"])
    expect(preview).to_contain_text(NAME)
    harmless(page)
    page.get_by_label("Project").fill(TAGGED)
    expect(page.get_by_role("alert")).to_contain_text(TAGGED)
    page.get_by_label("Project").fill("")
    page.get_by_role("tab", name="Many jobs").click()
    page.get_by_label("Jobs", exact=True).fill(f"{NAME};;{TAGGED};;;")
    expect(page.get_by_role("alert")).to_contain_text("cannot be read")
    harmless(page)
    rows = f'name,command\n"{TEXTS["a script"]}",echo {TAGGED}'
    page.get_by_label("Jobs", exact=True).fill(rows)
    expect(preview).to_contain_text(TEXTS["a script"])
    harmless(page)


LINKS = (
    f"/jobs?select={quote(TAGGED)}",
    "/jobs?select=queue:__proto__&group=__proto__&order=__proto__",
    f"/jobs?columns={quote(NAME)},__proto__,params.{quote(NAME)}",
    f"/jobs?next=javascript:{CODE}",
    f"/jobs/{quote(PLAIN)}",
    "/jobs/1?tab=__proto__#L<img/src=x>",
    "/jobs/%E0%A4%A",
    f"/events?kind={quote(NAME)}&job={quote(TAGGED)}",
    "/timeline?span=__proto__",
    f"/{quote(PLAIN)}?theme={quote(NAME)}",
)


def test_a_link_of_somebody_else_does_no_harm(look: Look, place: Place) -> None:
    page = look(place.home)
    for path in LINKS:
        page.goto(path_at(page, path))
        expect(page.get_by_role("button", name=re.compile("^Live"))).to_be_visible()
        expect(main(page)).not_to_be_empty()
        harmless(page)
