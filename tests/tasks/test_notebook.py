"""A notebook, executed by a real kernel: tasks in its loop, and a cell as a job."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import grass
from tests.support.fixtures import lasting, shared
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

__all__ = ["lasting", "shared"]

SOURCE = str(Path(grass.__file__).parents[1])
EXECUTE = """
import json, sys
import nbformat
from nbclient import NotebookClient

cells = [nbformat.v4.new_code_cell(cell) for cell in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
printed = [
    "".join(one.text for one in cell.outputs if one.get("name") == "stdout")
    for cell in notebook.cells
]
print(json.dumps(printed))
"""
CELLS = """
%load_ext grass
import beside
import grass as grain
----
class Point:
    def __init__(self, x):
        self.x = x

def moved(point):
    return Point(point.x + beside.STEP)

async def double(x):
    return 2 * x
----
async def main():
    async with grain.open_waitgroup() as wg:
        for x in range(3):
            wg.submit(grain.Cores(1), moved, Point(x))
        wg.submit(grain.Memory(0.1), double, 4)
    return wg.results

*points, doubled = await grain.run_combine(main, [], grain.Node(1, 1))
print([point.x for point in points], type(points[0]) is Point, doubled)
----
def moved(point):
    return Point(-point.x)
----
points = (await grain.run_combine(main, [], grain.Node(1, 1)))[:3]
print([point.x for point in points])
----
with grain.Executor(rpw={"cpu": 1}) as executor:
    print([point.x for point in executor.map(moved, points)])
----
%%grass --name cell
import os
print("job", os.environ["GRASS_JOB_ID"])
----
print(grain.jobs("last")[0].state)
"""


KILLED = """
import os, signal
import grass

class Model:
    def __init__(self, loss):
        self.loss = loss

def train(lr):
    import beside
    return Model(lr * beside.STEP)
----
job = grass.enqueue(train, lr=0.5)
open("job.txt", "w").write(str(job.id))
----
os.kill(os.getpid(), signal.SIGKILL)
"""
LATER = """
import grass
print(grass.jobs(int(open("job.txt").read())).result(60).loss)
"""


def executed(
    home: GrassHome, folder: Path, cells: str
) -> subprocess.CompletedProcess[str]:
    """Have a kernel run the cells of a notebook in the home's directory."""
    (home.desk / "beside.py").write_text("STEP = 10\n")
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXECUTE],
        input=json.dumps([cell.strip() for cell in cells.split("----")]),
        capture_output=True,
        text=True,
        check=False,
        cwd=home.desk,
        env={
            **home.environment,
            "PYTHONPATH": SOURCE,
            "HOME": str(folder),
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_PLATFORM_DIRS": "1",
            "PATH": f"{os.path.dirname(sys.executable)}:{home.environment['PATH']}",
        },
        timeout=2 * PATIENCE_S,
    )


@pytest.mark.daemon
def test_an_executed_notebook_runs_tasks_and_jobs(
    shared: GrassHome, tmp_path: Path
) -> None:
    ran = executed(shared, tmp_path, CELLS)
    assert ran.returncode == 0, ran.stderr
    job = next(one["id"] for one in shared.client.jobs() if one["name"] == "cell")
    assert json.loads(ran.stdout) == [
        "",
        "",
        "[10, 11, 12] True 8\n",
        "",
        "[0, -1, -2]\n",
        "[0, 1, 2]\n",
        f"job {job}\n",
        "succeeded\n",
    ]


@pytest.mark.daemon
def test_a_notebook_that_was_killed_collects_later(
    shared: GrassHome, tmp_path: Path
) -> None:
    """What its cells defined comes back to one in which nothing is defined."""
    killed = executed(shared, tmp_path, KILLED)
    assert "Kernel died" in killed.stderr, killed.stderr
    ran = executed(shared, tmp_path, LATER)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == ["5.0\n"]
