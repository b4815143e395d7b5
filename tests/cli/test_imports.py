"""The imports of commands that only read: most of their cost is starting Python."""

import subprocess
import sys

import pytest

FORBIDDEN = {
    *("argparse", "asyncio", "contextlib", "dataclasses", "http.client", "json"),
    *("msgspec", "re", "rich", "socket", "subprocess", "threading", "typing", "uuid"),
    "importlib.metadata",
}
SCRIPT = """
import os, sys
before = set(sys.modules)
from grass.cli.main import dispatch
dispatch(sys.argv[1:])
print(*(set(sys.modules) - before))
"""


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["show", "7"],
        ["explain", "7"],
        ["events"],
        ["logs", "7"],
        ["wait", "7"],
    ],
    ids=" ".join,
)
def test_a_command_that_looks_imports_little(
    surroundings: dict[str, str], words: list[str]
) -> None:
    ran = subprocess.run(
        [sys.executable, "-S", "-c", SCRIPT, *words],
        capture_output=True,
        text=True,
        check=True,
        env={**surroundings, "GRASS_AUTOSTART": "0"},
    )
    assert set(ran.stdout.split()) & FORBIDDEN == set()


STARTING = """
import sys
from grass.cli.commands import start
start.warn_of_unreported([])
print(*sys.modules)
"""


def test_starting_a_daemon_imports_nothing_of_its_store(
    surroundings: dict[str, str],
) -> None:
    ran = subprocess.run(
        [sys.executable, "-S", "-c", STARTING],
        capture_output=True,
        text=True,
        check=True,
        env=surroundings,
    )
    assert set(ran.stdout.split()) & {"msgspec", "sqlite3", "asyncio"} == set()
