"""The log viewer: live, back to the first line, searched, and safe."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.support.browser import (
    PHONE,
    Look,
    path_at,
    sideways,
    turn_to,
    violations,
    violations_in_themes,
)
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome

pytestmark = [pytest.mark.daemon, pytest.mark.browser]

CHORD = """async ([first, second]) => {
  const press = (key) =>
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  press(first);
  await new Promise((drawn) =>
    requestAnimationFrame(() => requestAnimationFrame(drawn)));
  const last = [...document.querySelectorAll(".log-text")].at(-1).textContent;
  press(second);
  return last;
}"""
"""Presses two keys, and returns the last line that was shown in between."""


def log(page: Page) -> Locator:
    return page.get_by_role("log")


def row(page: Page, line: int) -> Locator:
    return log(page).locator(f'[data-line="{line}"]')


def text(page: Page, line: int) -> Locator:
    return row(page, line).locator(".log-text")


def wrote(box: GrassHome, data: bytes, tmp_path: Path) -> int:
    """Have a job that wrote this and ended."""
    file = tmp_path / "written"
    file.write_bytes(data)
    job = box.enqueue("-c", "0", "--", "cat", str(file))
    box.wait(job)
    return job


def numbered(count: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(1, count + 1))


def test_the_last_lines_show_and_the_first_are_a_key_away(
    look: Look, box: GrassHome, tmp_path: Path
) -> None:
    page = look(box, f"/jobs/{wrote(box, numbered(30_000), tmp_path)}")
    expect(text(page, 30_000)).to_have_text("line 30000")
    assert log(page).locator(".log-row").count() < 100
    page.keyboard.press("g")
    expect(text(page, 1)).to_have_text("line 1")
    expect(row(page, 1)).to_be_in_viewport()
    page.keyboard.press("Shift+G")
    expect(text(page, 30_000)).to_have_text("line 30000")
    expect(row(page, 30_000)).to_be_in_viewport()


def test_a_key_with_a_second_one_does_nothing_by_itself(
    look: Look, box: GrassHome, tmp_path: Path
) -> None:
    page = look(box, f"/jobs/{wrote(box, numbered(3_000), tmp_path)}")
    expect(text(page, 3_000)).to_have_text("line 3000")
    assert page.evaluate(CHORD, ["g", "j"]) == "line 3000"
    expect(page).to_have_url(path_at(page, "/jobs"))


def test_new_lines_show_unless_the_reader_is_elsewhere(
    look: Look, box: GrassHome, gate: Fifo
) -> None:
    wait = f"read x < {gate}"
    script = f"seq 1 500; {wait}; seq 501 600; {wait}; seq 601 683; {wait}; echo end"
    page = look(box, f"/jobs/{box.enqueue('-c', '0', '--', 'sh', '-c', script)}")
    expect(text(page, 500)).to_have_text("500")
    gate.tell()
    expect(text(page, 600)).to_have_text("600")
    log(page).focus()
    page.keyboard.press("PageUp")
    follow = page.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "false")
    shown = log(page).locator(".log-row").first.get_attribute("data-line")
    gate.tell()
    jump = page.get_by_role("button", name="Jump to newest (83)")
    expect(jump).to_be_visible()
    expect(log(page).locator(".log-row").first).to_have_attribute("data-line", shown)
    jump.click()
    expect(text(page, 683)).to_have_text("683")
    expect(follow).to_have_attribute("aria-pressed", "true")
    gate.tell()
    expect(text(page, 684)).to_have_text("end")
    expect(page.get_by_text("ended", exact=True)).to_be_visible()


LATE_REPLY = """async () => {
  const { LogSource } = await import("/app/log/log_source.mjs");
  const wanted = { job: 1, attempt: 1, stream: "output", isLast: true };
  const source = new LogSource(wanted, () => {}, () => {});
  const reply = (lines, end) => (
    { attempt: 1, first: 1, lines, cut: [], end, open: false, ended: false });
  source.read = async () => reply(["a"], 2);
  await source.load();
  let answer;
  source.read = () => new Promise((now) => { answer = now; });
  const caughtUp = source.catchUp();
  source.take({ attempt: 1, offset: 2, end: 4, text: "b\\n", ended: false });
  source.read = async () => reply(["b"], 4);
  answer(reply([], 2));
  await caughtUp;
  await new Promise((now) => setTimeout(now));
  return source.lines.total;
}"""


def test_lines_that_come_while_an_older_reply_is_on_its_way_show(page: Page) -> None:
    assert page.evaluate(LATE_REPLY) == 2


AFTER_A_PROBLEM = """async () => {
  const { LogSource } = await import("/app/log/log_source.mjs");
  const wanted = { job: 1, attempt: 1, stream: "output", isLast: true };
  const source = new LogSource(wanted, () => {}, () => {});
  const reply = (lines, end) => (
    { attempt: 1, first: 1, lines, cut: [], end, open: false, ended: false });
  source.read = async () => reply(["a"], 2);
  await source.load();
  source.take({ problem: "the worker is away" });
  const told = source.problem;
  source.read = async () => reply(["b"], 4);
  source.take({ attempt: 1, offset: 2, end: 4, text: "b\\n", ended: false });
  await new Promise((now) => setTimeout(now));
  return [told, source.problem, source.lines.total];
}"""


def test_a_log_goes_on_after_a_problem(page: Page) -> None:
    assert page.evaluate(AFTER_A_PROBLEM) == ["the worker is away", "", 2]


def test_scrolling_up_with_the_wheel_stops_following(
    look: Look, box: GrassHome, tmp_path: Path
) -> None:
    page = look(box, f"/jobs/{wrote(box, numbered(3000), tmp_path)}")
    expect(row(page, 3000)).to_be_in_viewport()
    log(page).hover()
    page.mouse.wheel(0, -2000)
    follow = page.get_by_role("button", name="Follow")
    expect(follow).to_have_attribute("aria-pressed", "false")
    expect(text(page, 3000)).to_have_count(0)
    page.mouse.wheel(0, 4000)
    expect(follow).to_have_attribute("aria-pressed", "true")
    expect(row(page, 3000)).to_be_in_viewport()


def test_a_search_counts_and_goes_from_one_match_to_the_next(
    look: Look, box: GrassHome, tmp_path: Path
) -> None:
    data = numbered(20_000).replace(b"line 150\n", b"a \x1b[31mNeedle\x1b[0m\n")
    data = data.replace(b"line 19000\n", b"the needle 2\n")
    page = look(box, f"/jobs/{wrote(box, data, tmp_path)}")
    expect(text(page, 20_000)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("needle")
    page.keyboard.press("Enter")
    status = page.get_by_role("search").get_by_role("status")
    expect(status).to_have_text("1 of 2")
    expect(text(page, 150)).to_have_text("a Needle")
    expect(text(page, 150).locator("mark")).to_have_text("Needle")
    page.keyboard.press("Escape")
    expect(status).to_have_text("")
    field = page.get_by_label("search the output")
    field.fill("needle")
    field.press("Enter")
    expect(status).to_have_text("1 of 2")
    page.get_by_role("button", name="next match").click()
    expect(status).to_have_text("2 of 2")
    expect(text(page, 19_000)).to_have_text("the needle 2")
    log(page).focus()
    page.keyboard.press("Shift+N")
    expect(status).to_have_text("1 of 2")
    page.keyboard.press("n")
    expect(status).to_have_text("2 of 2")
    field.fill(r"needle \d$")
    field.press("Enter")
    expect(status).to_have_text("no match")
    page.get_by_role("button", name="search for a pattern").click()
    expect(status).to_have_text("1 of 1")
    expect(row(page, 19_000)).to_have_class(re.compile("log-found"))
    field.fill("needle (")
    field.press("Enter")
    expect(status).to_contain_text("missing )")


def test_a_search_goes_on_until_all_is_searched(
    look: Look, box: GrassHome, tmp_path: Path
) -> None:
    page = look(box, f"/jobs/{wrote(box, numbered(50), tmp_path)}")
    expect(text(page, 50)).to_be_visible()
    asked = list[str]()

    def search(route: Route) -> None:
        asked.append(route.request.url)
        if "from=1&" not in f"{route.request.url}&":
            return route.continue_()
        late = {"attempt": 1, "count": 0, "matches": [], "complete": False, "next": 11}
        return route.fulfill(json=late)

    page.route("**/search?*", search)
    field = page.get_by_label("search the output")
    status = page.get_by_role("search").get_by_role("status")
    field.fill("line 42")
    field.press("Enter")
    expect(status).to_have_text("1 of 1")
    page.get_by_role("button", name="First traceback").click()
    expect(status).to_have_text("There is no traceback")
    assert ["from=11" in one for one in asked] == [False, True, False, True]
    page.unroute_all()


def test_a_search_that_fails_says_why(
    look: Look, box: GrassHome, tmp_path: Path
) -> None:
    page = look(box, f"/jobs/{wrote(box, numbered(50), tmp_path)}")
    expect(text(page, 50)).to_be_visible()
    field = page.get_by_label("search the output")
    status = page.get_by_role("search").get_by_role("status")
    some = {"attempt": 1, "count": 1, "matches": [{"line": 4}], "complete": False}
    replies = [(200, {**some, "next": 9}), (503, {"detail": "the worker is away"})]

    def search(route: Route) -> None:
        status, document = replies[0] if len(replies) == 1 else replies.pop(0)
        route.fulfill(status=status, json=document)

    page.route("**/search?*", search)
    field.fill("line")
    field.press("Enter")
    expect(status).to_have_text("the worker is away")
    expect(row(page, 4)).to_have_class(re.compile("log-found"))
    with page.expect_response("**/search?*"):
        page.get_by_role("button", name="next match").click()
    expect(status).to_have_text("the worker is away")
    page.unroute_all()


def test_the_first_traceback_is_a_button_away(
    look: Look, box: GrassHome, tmp_path: Path
) -> None:
    trace = b"Traceback (most recent call last):\n"
    data = numbered(2000) + trace + numbered(2000) + trace
    page = look(box, f"/jobs/{wrote(box, data, tmp_path)}")
    expect(text(page, 4002)).to_be_visible()
    page.get_by_role("button", name="First traceback").click()
    expect(row(page, 2001)).to_be_in_viewport()
    expect(row(page, 2001)).to_have_class(re.compile("log-found"))


def test_a_link_names_lines(look: Look, box: GrassHome, tmp_path: Path) -> None:
    job = wrote(box, numbered(20_000), tmp_path)
    page = look(box, f"/jobs/{job}#L5700-5702")
    for line in (5700, 5701, 5702):
        expect(row(page, line)).to_have_class(re.compile("log-chosen"))
    expect(row(page, 5700)).to_be_in_viewport()
    expect(row(page, 5703)).not_to_have_class(re.compile("log-chosen"))
    page.get_by_role("link", name="line 5699").click()
    expect(page).to_have_url(path_at(page, f"/jobs/{job}#L5699"))
    page.get_by_role("link", name="line 5704").click(modifiers=["Shift"])
    expect(page).to_have_url(path_at(page, f"/jobs/{job}#L5699-5704"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy text").click()
    expect(page.get_by_text("6 lines copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines() == [f"line {number}" for number in range(5699, 5705)]


HOSTILE = (
    b"<script>alert(1)</script><img src=x onerror=alert(2)>\n"
    b"\x1b]0;title\x07\x1b[2J\x1b[31;1mred\x1b[0m plain \x1b[38;5;208morange"
    b"\x1b[48;2;1;2;3mback\x1b[m\n"
    b"zero\x00bell\x07back\x08 rtl\xe2\x80\xaeabc\n"
    b"bad \xff\xfe utf\n" + b"x" * 100_000 + b"\n"
    b"10%\r50%\r100%\n"
)


def test_what_a_job_writes_is_text(look: Look, box: GrassHome, tmp_path: Path) -> None:
    page = look(box, f"/jobs/{wrote(box, HOSTILE, tmp_path)}")
    told = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    expect(text(page, 1)).to_have_text(told)
    expect(text(page, 2)).to_have_text("red plain orangeback")
    expect(text(page, 2).get_by_text("red")).to_have_class(
        "ansi-bold ansi-front ansi-1"
    )
    orange = text(page, 2).get_by_text("orange", exact=True)
    assert orange.evaluate("e => e.style.getPropertyValue('--exact')") == (
        "rgb(255 135 0)"
    )
    expect(text(page, 3)).to_have_text("zero␀bell␇back␈ rtl⟨202e⟩abc")
    expect(text(page, 4)).to_have_text("bad \ufffd\ufffd utf")
    expect(text(page, 5)).to_contain_text("cut: the download has all")
    expect(text(page, 6)).to_have_text("100%")
    assert page.title() == "Job · grass"


def test_colours_go_on_in_the_next_line(
    look: Look, box: GrassHome, tmp_path: Path
) -> None:
    data = (
        b"\x1b[31mred\nstill\x1b[1m\n" + numbered(1500) + b"\x1b[39mbold\x1b[0m\nend\n"
    )
    page = look(box, f"/jobs/{wrote(box, data, tmp_path)}")
    # The first lines are not there yet: what they leave open is not known.
    expect(text(page, 1503)).to_have_text("bold")
    expect(text(page, 1503).locator("span")).to_have_count(0)
    page.keyboard.press("g")
    expect(text(page, 1)).to_have_text("red")
    expect(text(page, 2).get_by_text("still")).to_have_class("ansi-front ansi-1")
    wanted = "ansi-bold ansi-front ansi-1"
    expect(text(page, 3).get_by_text("line 1")).to_have_class(wanted)


def test_stdout_and_stderr_are_apart_where_they_are_kept_apart(
    look: Look, box: GrassHome, tmp_path: Path
) -> None:
    script = "echo out; echo err >&2"
    words = ("-c", "0", "--stderr", str(tmp_path / "err"), "--", "sh", "-c", script)
    job = box.enqueue(*words)
    box.wait(job)
    page = look(box, f"/jobs/{job}")
    expect(text(page, 1)).to_have_text("out")
    page.get_by_role("button", name="stderr").click()
    expect(text(page, 1)).to_have_text("err")
    raw = page.get_by_role("link", name="Download")
    expect(raw).to_have_attribute("href", re.compile("stream=stderr"))
    with page.expect_download() as started:
        raw.click()
    assert Path(started.value.path()).read_bytes() == b"err\n"


def test_an_attempt_is_chosen(look: Look, box: GrassHome) -> None:
    script = 'echo "try $GRASS_ATTEMPT"; exit 3'
    job = box.enqueue("-c", "0", "--retries", "1", "--", "sh", "-c", script)
    box.wait(job)
    page = look(box, f"/jobs/{job}")
    expect(text(page, 1)).to_have_text("try 2")
    page.get_by_label("attempt").select_option("1")
    expect(text(page, 1)).to_have_text("try 1")


def test_what_cannot_be_shown_says_why(look: Look, box: GrassHome) -> None:
    held = box.enqueue("--hold", "--", "true")
    page = look(box, f"/jobs/{held}")
    expect(page.get_by_text("No output yet")).to_be_visible()
    silent = box.enqueue("-c", "0", "--", "true")
    box.wait(silent)
    turn_to(page, f"/jobs/{silent}")
    expect(page.get_by_text("It wrote nothing")).to_be_visible()
    gone = box.enqueue("-c", "0", "--", "echo", "hello")
    box.wait(gone)
    Path(box.client.job(gone)["attempts"][0]["output"]).unlink()
    turn_to(page, f"/jobs/{gone}")
    expect(page.get_by_text("There is no output to show")).to_be_visible()
    expect(page.get_by_text(re.compile("the output file .* is gone"))).to_be_visible()


def test_axe_finds_nothing(look: Look, box: GrassHome, tmp_path: Path) -> None:
    colours = b" ".join(
        b"\x1b[%dm colour %d \x1b[0m" % (code, code)
        for code in (*range(30, 38), *range(40, 48), *range(90, 98))
    )
    exact = b"\n\x1b[38;5;226mpale\x1b[0m \x1b[38;2;10;10;10mdark\x1b[0m\n"
    data = numbered(300) + colours + exact + numbered(5)
    page = look(box, f"/jobs/{wrote(box, data, tmp_path)}#L300")
    expect(text(page, 302)).to_contain_text("pale")
    assert violations_in_themes(page) == []
    page.set_viewport_size(PHONE)
    page.keyboard.press("w")
    assert violations(page) == []
    assert sideways(page) == 0
