"""Programs that import grass, run as processes beside a daemon."""

import subprocess
import sys
from pathlib import Path

import grass
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

SOURCE = str(Path(grass.__file__).parent.parent)

Ran = subprocess.CompletedProcess[str]


def environment(home: GrassHome, **more: str) -> dict[str, str]:
    """Return the environment in which Python finds grass, and this home."""
    return {**home.environment, "PYTHONPATH": SOURCE, **more}


def python(home: GrassHome, code: str, **more: str) -> Ran:
    """Run a program to its end."""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=home.desk,
        env=environment(home, **more),
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
    )


def script(home: GrassHome, name: str, code: str, *words: str, **more: str) -> Ran:
    """Save a program and run it to its end."""
    (home.desk / name).write_text(code)
    return subprocess.run(
        [sys.executable, name, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=home.desk,
        env=environment(home, **more),
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
    )


class Programs:
    """Programs that run beside a test, gone after it."""

    def __init__(self) -> None:
        self._begun: list[subprocess.Popen[str]] = []

    def begin(self, home: GrassHome, code: str) -> subprocess.Popen[str]:
        """Run a program beside the test."""
        begun = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=home.desk,
            env=environment(home),
        )
        self._begun.append(begun)
        return begun

    def end(self) -> None:
        """Kill what is left."""
        for one in self._begun:
            one.kill()
            one.communicate()
