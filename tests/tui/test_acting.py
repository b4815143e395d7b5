"""What can be done from `grass top`, by whom, and after which question."""

import re
from pathlib import Path

import pytest

import grass
from grass.api.app import ENDPOINTS
from grass.cli.main import COMMANDS
from grass.tui.actions import ACTIONS, READ_ONLY, Access, offered
from grass.tui.text_screens import KEYS
from tests.support.fifo import Fifo
from tests.support.homes import Document, GrassHome
from tests.support.patience import until

from .playing import Play, play

WAITS = ("--require", "{}", "--", "sh", "-c")


def job(state: str, owner: str = "uid:1000", *flags: str) -> Document:
    return {"id": 7, "state": state, "owner": owner, "flags": list(flags)}


def ids(jobs: list[Document], access: Access) -> set[str]:
    return {one.id for one in offered(jobs, access)}


def test_every_action_is_an_endpoint_and_a_command() -> None:
    known = {f"{one.method} {one.path}" for one in ENDPOINTS}
    for one in ACTIONS:
        assert one.endpoint in known
        assert one.command in COMMANDS


def test_actions_are_named_as_on_the_page() -> None:
    page = Path(grass.__file__).with_name("web") / "static/app/actions.mjs"
    fields = ("id", "label", "past", "key", "endpoint", "command")
    named = {one.id: tuple(getattr(one, field) for field in fields) for one in ACTIONS}
    del named["terminate"]
    pattern = ", ".join(rf'{field}: "([^"]*)"' for field in fields)
    rows = re.findall(rf'\{{ {pattern}.*target: "job"', page.read_text())
    shared = {row[0]: row for row in rows if row[0] in named}
    assert shared == named


def test_no_key_means_two_things() -> None:
    letters = [one.key for one in ACTIONS]
    assert len(letters) == len(set(letters))
    keys = [one.shortcut for one in ACTIONS]
    others = {key for _, part in KEYS for keys, _ in part for key in keys.split()}
    assert len(keys) == len(set(keys))
    assert not set(keys) & (others | {"P", "n", ".", "?"})


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (job("held"), {"cancel", "release", "first"}),
        (job("queued"), {"cancel", "hold", "first"}),
        (job("failed"), {"rerun", "remove"}),
        (
            job("running"),
            {"cancel", "suspend", "interrupt", "terminate", "kill"},
        ),
    ],
    ids=["held", "queued", "failed", "running"],
)
def test_what_is_offered_follows_from_the_state(
    shown: Document, expected: set[str]
) -> None:
    assert ids([shown], Access()) == expected


def test_a_suspended_job_is_continued_and_not_suspended() -> None:
    found = ids([job("running", "uid:1000", "suspended")], Access())
    assert "continue" in found
    assert "suspend" not in found


def test_what_a_role_may_not_do_is_not_offered() -> None:
    own = Access("token:me", frozenset({"read", "submit"}))
    assert ids([job("held", "token:me")], own) == {"cancel", "release", "first"}
    assert ids([job("held", "token:other")], own) == set()
    assert ids([job("held")], READ_ONLY) == set()


@pytest.mark.daemon
def test_a_job_is_cancelled_after_a_question(shared: GrassHome, gate: Fifo) -> None:
    id = shared.enqueue(*WAITS, f"read x < {gate}")
    until(lambda: shared.state(id), "no start", lambda state: state == "running")

    async def scene(at: Play) -> None:
        await at.shows("● running")
        await at.press("c")
        await at.shows(f"Cancel: job {id}?")
        await at.press("n")
        await at.shows("● running")
        assert shared.state(id) == "running"
        await at.press("c", "y")
        await at.shows("cancelled")

    play(shared, scene)
    assert shared.wait(id)["state"] == "cancelled"


@pytest.mark.daemon
def test_selected_jobs_are_released_together(shared: GrassHome) -> None:
    first, second, third = (
        shared.enqueue("--hold", "--require", "{}", "--name", name, "true")
        for name in ("a", "b", "c")
    )

    async def scene(at: Play) -> None:
        await at.shows("3 held")
        await at.press("x", "space")
        await at.shows("2 selected")
        await at.press("full_stop", "e")
        await at.shows("Release: 2 jobs, none of them running?")
        await at.press("y")
        await at.shows("2 succeeded")

    play(shared, scene)
    assert shared.states([first, second, third]) == ["succeeded"] * 2 + ["held"]


@pytest.mark.daemon
def test_verbs_have_keys(shared: GrassHome, gate: Fifo) -> None:
    held = shared.enqueue("--hold", "--name", "one", "--", "true")

    async def scene(at: Play) -> None:
        await at.shows("1 held")
        await at.press("P", "backspace", "5", "enter")
        await at.until(lambda: shared.client.job(held)["priority"] == 5)
        await at.press("h")
        await at.until(lambda: "nothing to hold" in at.toasts())
        await at.press("c", "y")
        await at.shows("⊘ cancelled")
        await at.press("r")
        await at.shows("succeeded")

    play(shared, scene)
    assert len(shared.client.job(held)["attempts"]) == 1


@pytest.mark.daemon
def test_a_signal_is_sent_after_a_question(shared: GrassHome, news: Fifo) -> None:
    line = f"trap 'echo got > {news}; exit 0' INT; echo up > {news}; sleep 1000 & wait"
    id = shared.enqueue(*WAITS, line)
    assert news.hear() == "up"

    async def scene(at: Play) -> None:
        await at.shows("● running")
        await at.press("I")
        await at.shows("Send SIGINT")
        await at.press("y")
        assert news.hear() == "got"

    play(shared, scene)
    assert shared.wait(id)["state"] == "succeeded"


@pytest.mark.daemon
def test_a_command_is_enqueued_from_the_screen(shared: GrassHome) -> None:
    async def scene(at: Play) -> None:
        await at.shows("No jobs yet")
        await at.press("n")
        await at.type("true")
        await at.press("enter")
        await at.shows("succeeded")

    play(shared, scene)


@pytest.mark.daemon
def test_a_read_only_screen_changes_nothing(shared: GrassHome) -> None:
    held = shared.enqueue("--hold", "--name", "one", "--", "true")

    async def scene(at: Play) -> None:
        await at.shows("1 held", "read-only")
        assert "actions" not in at.text()
        await at.press("u")
        await at.until(lambda: "this screen is read-only" in at.toasts())
        await at.press("full_stop")
        await at.until(lambda: "nothing that can be done" in at.toasts())
        await at.press("n")
        await at.until(lambda: at.toasts().count("this screen is read-only") > 1)
        await at.press("question_mark")
        await at.shows("read-only: nothing can be changed")

    play(shared, scene, access=READ_ONLY)
    assert shared.state(held) == "held"
