"""The command `grass top` itself, on a terminal and without one."""

import sys

import pytest

from grass.cli.main import dispatch
from tests.support.homes import GrassHome
from tests.support.screen import Screen


def test_without_textual_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    assert dispatch(["top"]) == 1
    said = capsys.readouterr().err
    assert "pip install 'grass-scheduler[tui]'" in said
    assert len(said.splitlines()) == 1


def test_without_a_terminal_the_next_step_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["top"]) == 2
    assert "grass show" in capsys.readouterr().err


def test_a_word_that_is_no_selector_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dispatch(["top", "night"]) == 2
    assert "queue:night" in capsys.readouterr().err


@pytest.mark.daemon
@pytest.mark.parametrize(
    ("words", "shown"),
    [(["--readonly"], "read-only"), (["state:held"], "filter: state:held")],
    ids=["read-only", "selected"],
)
def test_it_is_left_with_q_and_the_terminal_is_as_it_was(
    shared: GrassHome, words: list[str], shown: str
) -> None:
    shared.enqueue("--hold", "--name", "something", "--", "true")
    screen = Screen([*shared.grass, "top", *words], shared.environment)
    screen.until("something")
    screen.until(shown)
    screen.type("q")
    assert screen.ended() == 0
    assert "\x1b[?1049l" in screen.seen


@pytest.mark.daemon
def test_ctrl_c_leaves_it(shared: GrassHome) -> None:
    screen = Screen([*shared.grass, "top"], shared.environment)
    screen.until("No jobs yet")
    assert screen.interrupt() == 0
