"""The example of results that outlive the program runs, in two programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.homes import GrassHome

EXAMPLE = Path(__file__).parents[2] / "examples" / "results" / "collect_later.py"


def ran(home: GrassHome, *words: str) -> str:
    return subprocess.run(
        [sys.executable, EXAMPLE, *words],
        env={**home.environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.daemon
def test_results_are_collected_by_another_program(shared: GrassHome) -> None:
    first, last = ran(shared, "enqueue").split()
    assert int(last) - int(first) == 8
    assert ran(shared, "collect", first, last) == "the sum is 285\n"
