"""A terminal of tmux with one command in it, and what it shows.

A screen is kept as text: a line for each line, with the colours as words in brackets,
`[green]● running[/]`, so that it can be read and compared whatever tmux writes.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tests.support.patience import PATIENCE_S, until

_STYLES = {1: "bold", 2: "dim", 4: "underlined", 7: "reverse"}
_COLOURS = {
    31: "red",
    32: "green",
    33: "yellow",
    34: "blue",
    35: "magenta",
    36: "cyan",
}
_ATTRIBUTES_OFF, _COLOUR_OFF = 22, 39
_SEQUENCE = re.compile(r"\x1b\[([\d;]*)m|\x1b[()][A-Z0]|[\x0e\x0f]")
_TAG = re.compile(r"\[([a-z ]+)\](.*?)\[/\]")

GOLDEN = Path(__file__).with_name("golden")
SIZES = {"80": (80, 44), "120": (120, 44), "200": (200, 44)}
SIZES |= {"80x24": (80, 24), "120x24": (120, 24)}
LOOKS = {
    "colour": {"LANG": "C.UTF-8"},
    "plain": {"LANG": "C.UTF-8", "NO_COLOR": "1"},
    "ascii": {"LANG": "C", "NO_COLOR": "1"},
}


class Run(NamedTuple):
    """Letters of one style."""

    text: str
    style: tuple[str, ...]


class Terminal:
    """A tmux server of its own with one window."""

    def __init__(
        self,
        folder: Path,
        size: tuple[int, int],
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        """Begin to run the command on a terminal of `size` columns and lines."""
        self._socket = str(folder / "tmux")
        self._environment = {**os.environ, **environment, "TERM": "xterm-256color"}
        self._environment.pop("TMUX", None)
        line = shlex.join(["env", *_assignments(environment), *command])
        # The window stays when the command has ended, and says so.
        done = shlex.join(["tmux", "-S", self._socket, "wait-for", "-S", "done"])
        shell = f"{line}; {done}; exec sleep 1000"
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d"),
            *("-x", str(size[0]), "-y", str(size[1]), "sh", "-c", shell),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """End the server and what runs in it."""
        self._tmux("kill-server")

    def ended(self) -> "Terminal":
        """Wait for the end of the command."""
        self._tmux("wait-for", "done")
        return self

    def showing(self, text: str) -> "Terminal":
        """Wait until a text is on the screen."""
        until(
            self.screen,
            f"the terminal never showed {text!r}",
            lambda s: text in plain(s),
        )
        return self

    def press(self, *keys: str) -> None:
        """Press keys, by the names that tmux has for them."""
        self._tmux("send-keys", *keys)

    def screen(self) -> str:
        """Return what is on the screen, without empty lines at the end."""
        captured = self._tmux("capture-pane", "-p", "-e", "-J")
        lines = ["".join(map(_tagged, _runs(line))) for line in _styled(captured)]
        return "\n".join(line.rstrip() for line in lines).rstrip("\n") + "\n"

    def _tmux(self, *words: str) -> str:
        ran = subprocess.run(
            ["tmux", "-u", "-S", self._socket, *words],
            env=self._environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
        return ran.stdout


def plain(screen: str) -> str:
    """Return a kept screen without its colours."""
    return _TAG.sub(r"\2", screen)


def runs_of(line: str) -> Iterator[Run]:
    """Return the runs of a line of a kept screen."""
    at = 0
    for found in _TAG.finditer(line):
        yield Run(line[at : found.start()], ())
        yield Run(found[2], tuple(found[1].split()))
        at = found.end()
    yield Run(line[at:], ())


def _assignments(environment: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in environment.items()]


def _tagged(run: Run) -> str:
    if not run.style or not run.text.strip():
        return run.text
    return f"[{' '.join(run.style)}]{run.text}[/]"


def _styled(captured: str) -> Iterator[list[Run]]:
    """Return the lines of a capture as runs; a style may go on over lines."""
    style: dict[str, str] = {}
    for line in captured.splitlines():
        runs, at = [], 0
        for found in _SEQUENCE.finditer(line):
            runs.append(Run(line[at : found.start()], tuple(style.values())))
            _apply(style, found[1])
            at = found.end()
        runs.append(Run(line[at:], tuple(style.values())))
        yield runs


def _runs(runs: list[Run]) -> Iterator[Run]:
    """Join what follows on each other in one style."""
    joined: list[Run] = []
    for run in runs:
        if joined and joined[-1].style == run.style:
            joined[-1] = Run(joined[-1].text + run.text, run.style)
        elif run.text:
            joined.append(run)
    yield from joined


def _apply(style: dict[str, str], codes: str | None) -> None:
    if codes is None:
        return
    for code in map(int, (codes or "0").split(";")):
        if code in _STYLES:
            style[_STYLES[code]] = _STYLES[code]
        elif code in _COLOURS:
            style["colour"] = _COLOURS[code]
        elif code == _COLOUR_OFF:
            style.pop("colour", None)
        elif code == _ATTRIBUTES_OFF:
            for look in _STYLES.values():
                style.pop(look, None)
        elif code == 0:
            style.clear()
