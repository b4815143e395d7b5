"""What commands show on a real terminal, compared with the screens kept in `golden/`.

`make screens` writes them anew.
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .scenario import Scenario
from .terminal import GOLDEN, LOOKS, SIZES, Terminal, plain

pytestmark = [
    pytest.mark.daemon,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]


class Case(NamedTuple):
    """A command on a terminal."""

    name: str
    words: tuple[str, ...]
    size: str
    look: str
    until: str = ""

    def __str__(self) -> str:
        """Return the name of its file."""
        return f"{self.name}-{self.size}-{self.look}"


COMMANDS = (
    ("show", "show", ""),
    ("watch", "show --watch", "q quits"),
    ("wait", "wait 7-18", "of 12 jobs done"),
    ("explain-waiting", "explain 19", ""),
    ("explain-failed", "explain 2", ""),
    ("logs", "logs -f 5", "epoch 1"),
    ("logs-waiting", "logs -f 19", "free 1 of 2"),
    ("logs-ended", "logs -f 2", ""),
)
"""Names, commands, and what shows that one that goes on has drawn its screen."""


def cases() -> Iterator[Case]:
    for name, line, until in COMMANDS:
        for size in ("80", "120", "200"):
            for look in ("colour", "plain"):
                yield Case(name, tuple(line.split()), size, look, until)
    yield Case("show", ("show",), "80", "ascii")
    yield Case("watch", ("show", "--watch"), "80x24", "colour", "q quits")
    for look in LOOKS:
        yield Case("top", ("top",), "80x24", look, "COMMAND")
    yield Case("members", ("show", "10-18"), "80", "colour")
    yield Case("queue", ("show", "q1"), "80", "colour")
    yield Case("job", ("show", "5"), "80", "colour")


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    made = Scenario(tmp_path_factory.mktemp("screens"))
    yield made
    made.end()


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_a_screen_is_as_it_was_kept(
    scenario: Scenario, tmp_path: Path, case: Case
) -> None:
    environment = {**scenario.environment, **LOOKS[case.look]}
    command = [*scenario.home.grass, *case.words]
    with Terminal(tmp_path, SIZES[case.size], command, environment) as terminal:
        if case.until:
            terminal.showing(case.until)
        else:
            terminal.ended()
        compare(f"{case}.txt", terminal.screen(), scenario)


def test_a_watched_list_is_scrolled_and_left_with_q(
    scenario: Scenario, tmp_path: Path
) -> None:
    command = [*scenario.home.grass, "show", "--watch"]
    environment = {**scenario.environment, **LOOKS["plain"]}
    with Terminal(tmp_path, SIZES["80x24"], command, environment) as terminal:
        terminal.showing("lines 1-")
        terminal.press("Down")
        terminal.showing("lines 2-")
        terminal.press("PageDown")
        terminal.press("End")
        terminal.showing("prepare")
        terminal.press("q")
        assert plain(terminal.ended().screen()) == "\n"


def test_what_is_typed_behind_q_is_left_to_the_shell(
    scenario: Scenario, tmp_path: Path
) -> None:
    watch = shlex.join([*scenario.home.grass, "show", "--watch"])
    command = ["sh", "-c", f"{watch}; read -r line; echo read $line"]
    environment = {**scenario.environment, **LOOKS["plain"]}
    with Terminal(tmp_path, SIZES["80x24"], command, environment) as terminal:
        terminal.showing("lines 1-")
        terminal.press("q", "l", "s", "Enter")
        terminal.showing("read ls")


def test_q_ends_a_watched_list_that_is_seldom_drawn(
    scenario: Scenario, tmp_path: Path
) -> None:
    command = [*scenario.home.grass, "show", "--watch=1000"]
    environment = {**scenario.environment, **LOOKS["plain"]}
    with Terminal(tmp_path, SIZES["80x24"], command, environment) as terminal:
        terminal.showing("lines 1-")
        scenario.home.ok("pause", "q1")
        scenario.home.ok("resume", "q1")
        terminal.press("Down")
        terminal.showing("lines 2-")
        terminal.press("q")
        terminal.ended()


def compare(name: str, screen: str, scenario: Scenario) -> None:
    """Compare a screen with the kept one, or keep it if that was asked for."""
    screen = normalised(screen, scenario)
    file = GOLDEN / name
    if os.environ.get("GRASS_SCREENS") == "write":
        file.write_text(screen)
    assert screen == file.read_text(), f"`make screens` writes {file} anew"


def normalised(screen: str, scenario: Scenario) -> str:
    """Take out what differs from run to run and between machines."""
    masks = (
        (re.escape(str(scenario.home.folder)), "/home/you/.local/state/grass/desk"),
        (re.escape(str(scenario.home.desk)), "/home/you/work"),
        (r"(\[dim\]pid +\[/\])\d+", r"\g<1>4711"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-08-03 21:40:12"),
        (r"\b\d{1,2}s\b", "0s"),
        (r"\bcpu:\d+,\d+", "cpu:2,3"),
        (r"\bcpu:\d+(?!,)\b", "cpu:0"),
        (r"(\[dim\]owner +\[/\])\w+", r"\g<1>you"),
        # What a job uses is there after a while, and differs each time.
        (r"(?s)\[bold underlined\]USAGE.*?\n\n", ""),
        (r"\b\d+(\.\d+)? [KMG]?i?B\b", "54 B"),
    )
    for pattern, replacement in masks:
        screen = re.sub(pattern, replacement, screen)
    return screen
