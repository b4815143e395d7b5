"""GRN's own examples, word for word, with `import grass as grn` in place of `grn`."""

import sys

import pytest

from tests.profiles.programs import SOURCE, script
from tests.support.homes import GrassHome

TORCH = """
def randn(*sizes, device): return print("randn", *sizes, device, flush=True)
"""
"""Stands in for torch where it is not installed, or finds no GPU."""

JOB = """
import grn

@grn.job()
def job():
    import torch
    x = torch.randn(1000, device='cuda:0')

if __name__ == '__main__':
    job()
"""

LONG_JOB = """
import grn

@grn.job()
def long_job(sleep: int):
    import torch
    import time
    x = torch.randn(1000, device='cuda:0')
    time.sleep(sleep)

@long_job.profile
def short_job(*args):
    import torch
    import time
    x = torch.randn(1000, device='cuda:0')

if __name__ == '__main__':
    # short_job will run first to gather the resource profile.
    # Then long_job will run automatically.
    # The arguments passed to long_job here will also be passed to short_job.
    long_job(10)
"""


@pytest.fixture
def lab(shared: GrassHome) -> GrassHome:
    """Give a home with two GPUs, and a torch that prints what it is asked for."""
    shared.ok("capacity", "add", "{gpu:2}")
    (shared.desk / "torch.py").write_text(TORCH)
    return shared


def ours(code: str) -> str:
    return code.replace("import grn", "import grass as grn")


def test_job(lab: GrassHome) -> None:
    ran = script(lab, "job.py", ours(JOB))
    assert ran.stdout == "randn 1000 cuda:0\n", ran.stderr
    (job,) = [one for one in lab.client.jobs() if one["name"] == "job.py::job"]
    assert lab.wait(job["id"])["state"] == "succeeded"


def test_short_job_runs_first_and_then_the_long_one(lab: GrassHome) -> None:
    code = ours(LONG_JOB).replace("long_job(10)", "long_job(0)")
    ran = script(lab, "long_job.py", code)
    assert ran.stdout == "randn 1000 cuda:0\n" * 2, ran.stderr


def test_grn_run_is_run_each(lab: GrassHome) -> None:
    (lab.desk / "job.py").write_text(ours(JOB))
    lab.add_program("python", f'PYTHONPATH={SOURCE}:. exec {sys.executable} "$@"')
    ran = lab.run("run", "--each", "python job.py", "python job.py")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("randn 1000 cuda:0") == 2
