"""The rule about skipped tests, by itself and in a run of pytest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.skips import leave_to_skip

TESTS = Path(__file__).parents[1]
LIST = ["# a comment: with a colon", "tests/a.py::test_b: no GPU here", "tests/c.py:"]


@pytest.mark.parametrize(
    ("nodeid", "allowed"),
    [
        ("tests/a.py::test_b", True),
        ("tests/a.py::test_b[1]", True),
        ("tests/a.py::test_c", False),
        ("tests/c.py::test_d", False),
    ],
)
def test_a_skip_needs_a_line_with_a_reason(nodeid: str, allowed: bool) -> None:
    assert leave_to_skip(nodeid, LIST) is allowed


@pytest.mark.parametrize(("ci", "code"), [("1", 1), ("", 0)])
def test_a_skip_without_leave_fails_in_ci_only(
    tmp_path: Path, ci: str, code: int
) -> None:
    folder = tmp_path / "tests"
    for room in ("simulation", "support"):
        (folder / room).mkdir(parents=True)
    for name in ("__init__.py", "conftest.py", "allowed_skips.txt"):
        (folder / name).write_text((TESTS / name).read_text())
    imported = ("support/skips.py", "simulation/fresh_seeds.py")
    for name in (*imported, "support/__init__.py", "simulation/__init__.py"):
        (folder / name).write_text((TESTS / name).read_text())
    (folder / "test_it.py").write_text(
        "import pytest\ndef test_it(): pytest.skip('just so')\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    ran = subprocess.run(
        words,
        cwd=tmp_path,
        env={
            **os.environ,
            "CI": ci,
            "PYTHONPATH": str(tmp_path),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == code, ran.stdout
    assert ("not on allowed_skips.txt: Skipped: just so" in ran.stdout) is bool(ci)
