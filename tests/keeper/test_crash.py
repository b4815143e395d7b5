"""Places where a process may be killed for a test."""

from __future__ import annotations

import subprocess
import sys

from grass.keeper import crash_points

PASS_TWICE = (
    "from grass.keeper.crash_points import crash_point, passed_on, VARIABLE\n"
    "import os\n"
    "assert VARIABLE not in os.environ\n"
    "for name in ('here', 'there', 'here'):\n"
    "    print(name, passed_on(), flush=True)\n"
    "    crash_point(name)\n"
)


def run(crash_at: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PASS_TWICE],
        env={crash_points.VARIABLE: crash_at} if crash_at else {},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_without_a_wish_nothing_happens() -> None:
    assert run("").returncode == 0
    assert crash_points.passed_on() == {}


def test_the_chosen_pass_kills() -> None:
    first, second = run("here"), run("here:2")
    assert (first.returncode, second.returncode) == (-9, -9)
    assert len(first.stdout.splitlines()) == 1
    assert len(second.stdout.splitlines()) == 3
    assert "'GRASS_CRASH_AT': 'here:2'" in second.stdout


def test_another_place_goes_on() -> None:
    assert run("elsewhere:1").returncode == 0
    assert run("there:2").returncode == 0
