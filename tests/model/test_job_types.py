"""The type of a job, by which its memory is learned."""

import pytest

from grass.model.jobs.job_types import job_type
from grass.model.jobs.spec import Spec

PLAIN = Spec(request=())


@pytest.mark.parametrize(
    ("words", "type"),
    [
        (["python", "train.py", "--lr", "0.1"], "train.py"),
        (["python", "-u", "./runs/train.py"], "runs/train.py"),
        (["/usr/bin/python3", "/home/me/train.py"], "/home/me/train.py"),
        (["A=1", "python", "train.py"], "train.py"),
        (["python train.py --lr {lr}"], "train.py"),
        (["torchrun", "--nproc_per_node", "4", "a/train.py"], "a/train.py"),
        (["python", "-m", "pkg.mod"], "pkg.mod"),
        (["bin/fit", "--fast"], "bin/fit"),
        (["python", "-c", "print(1)"], "python -c print(1)"),
        (["cd /data && python train.py"], "cd /data && python train.py"),
        (["KEY=secret cd /data && ls"], "cd /data && ls"),
        (["bash", "-c", "a\nb"], "bash -c a b"),
    ],
)
def test_a_type_is_the_script_or_else_the_program(words: list[str], type: str) -> None:
    assert job_type(PLAIN, words) == type


def test_a_type_that_is_given_goes_before_that_of_the_command() -> None:
    assert job_type(Spec(request=(), job_type="fit"), ["python", "a.py"]) == "fit"


def test_the_command_of_a_queue_counts() -> None:
    assert job_type(Spec(request=(), prefix=("python", "a.py")), ["--x"]) == "a.py"


def test_a_guest_without_a_type_has_its_name() -> None:
    assert job_type(PLAIN, [], "program.py") == "program.py"
