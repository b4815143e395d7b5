"""Programs that run functions on other machines, and the ledger that these write."""

import subprocess
import sys
from pathlib import Path

from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, invitation, new_line, place_of
from tests.support.patience import PATIENCE_S, until

HEAD = """
import os, sys, time
import grass as grain

LEDGER, GATE = sys.argv[1:3]

def note(word):
    with open(LEDGER, "a") as file:
        file.write(f"{word} {os.environ.get('GRASS_TASK_HOST') or 'head'}\\n")

def passed(gate=GATE):
    # One line lets one pass.
    descriptor = os.open(gate, os.O_RDONLY)
    while os.read(descriptor, 1) != b"\\n":
        pass
    os.close(descriptor)

def held(word):
    # Runs until the test lets it end.
    note(word)
    passed()
    return word
"""


class Program:
    """A program of a home, which runs beside the test."""

    def __init__(self, home: GrassHome, text: str, *words: str, cwd: Path) -> None:
        self.ledger = cwd / "ledger"
        self.ledger.touch()
        script = cwd / "prog.py"
        script.write_text(HEAD + text)
        enter: tuple[str, ...] = getattr(home, "inside", tuple)()
        self.process = subprocess.Popen(
            [*enter, sys.executable, str(script), str(self.ledger), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env=home.environment,
        )

    def noted(self) -> list[str]:
        """Return the words that functions have noted, and where."""
        return self.ledger.read_text().splitlines()

    def await_noted(self, *words: str) -> None:
        """Wait until functions have noted these, in any order."""
        until(
            lambda: sorted(self.noted()),
            "the functions did not begin",
            lambda noted: noted == sorted(words),
        )

    def result(self) -> str:
        """Return what it printed, once it has succeeded."""
        printed, said = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, said
        return printed

    def failure(self) -> str:
        """Return what it said, once it has failed."""
        _, said = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode, "it has succeeded"
        return said

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


def node(home: GrassHome, *options: str) -> str:
    """Start a broker with a worker; return its address."""
    return place_of(invitation(home.ok("start", *LOOPBACK, *options)))


def joined(head: GrassHome, broker: GrassHome) -> None:
    """Let a home enqueue at a broker, and run nothing for it."""
    head.ok("join", "--no-start", new_line(broker, "--role", "submit"))
