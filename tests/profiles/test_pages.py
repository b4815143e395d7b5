"""The programs of the documentation and of `examples` run."""

import subprocess
import sys

import pytest

from tests.docs.pages import ROOT, steps
from tests.profiles.programs import SOURCE, script
from tests.support.homes import GrassHome

PAGE = (ROOT / "docs/how-to/python.md").read_text()
FILES = dict(one.file for one in steps(PAGE) if one.file is not None)


@pytest.fixture
def lab(shared: GrassHome) -> GrassHome:
    """Give a home with a GPU that was declared."""
    if "gpu" not in shared.client.workers()["workers"][0]["capacity"]:
        shared.ok("capacity", "add", "{gpu:1}")
    return shared


def test_programs_of_the_page_run(lab: GrassHome) -> None:
    assert script(lab, "train.py", FILES["train.py"]).stdout == (
        "rate 0.1 on GPU 0\nrate 0.01 on GPU 0\n"
    )
    assert script(lab, "block.py", FILES["block.py"]).stdout == (
        "holding 1 GPU\ngiven back\n"
    )
    names = {one["name"] for one in lab.client.jobs()}
    assert {"train.py::train", "half"} <= names
    lab.add_program("python", f'PYTHONPATH={SOURCE} exec {sys.executable} "$@"')
    ran = lab.run("run", "--each", "python train.py", "python block.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count(" | ") == 4


def test_example_of_a_share_runs(lab: GrassHome) -> None:
    code = (ROOT / "examples/guests/share.py").read_text()
    ran = script(lab, "share.py", code)
    assert ran.stdout.startswith("holding {'gpu': ['0']"), ran.stderr
    assert ran.stdout.endswith("given back\n")


def test_makefile_of_the_example_runs_every_rate() -> None:
    folder = str(ROOT / "examples/guests")
    words = ["make", "-s", "-C", folder, "PYTHON=echo"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    rates = ("0.3", "0.1", "0.03", "0.01")
    assert ran.stdout == "".join(f"train.py {rate}\n" for rate in rates)


def test_example_of_a_training_runs(lab: GrassHome) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    code = (ROOT / "examples/guests/train.py").read_text()
    ran = script(lab, "train_line.py", code)
    assert ran.stdout.startswith("rate 0.1: error 0.0000"), ran.stderr
