"""Every example of tasks runs, and prints what it should."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "tasks"
PRINTED = {
    "sweep.py": "best of 9: rate 0.01, layers 3, loss 0\n",
    "tree.py": "the sum is 499500\n",
    "grid_search.py": "best: {'n_neighbors': 5}\n",
    "own_resource.py": "10 calls, at most 2 at a time\n",
}


def test_all_are_here() -> None:
    # One is about other machines: see tests/machines/test_task_network.py.
    names = {*PRINTED, "lab_machines.py"}
    assert {path.name for path in FOLDER.glob("*.py")} == names


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, FOLDER / name], capture_output=True, text=True, check=False
    )
    assert (ran.stdout, ran.returncode) == (PRINTED[name], 0), ran.stderr
