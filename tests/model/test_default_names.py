"""What a job is called that nobody gave a name."""

import pytest

from grass.model.jobs.default_names import default_name, script_of


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("python train.py --lr 0.1", "train.py"),
        ("/usr/bin/python3.11 -u -W ignore runs/train.py", "train.py"),
        ("python -m pkg.mod train.py", "pkg.mod"),
        ("python3 -um pkg.mod", "pkg.mod"),
        ("python -m", "python"),
        ("python -c print(1) x.py", "python"),
        ("python -", "python"),
        ("python", "python"),
        ("python -V", "python"),
        ("pythonic train.py", "pythonic"),
        ("bash -e run.sh", "run.sh"),
        ("bash -o pipefail run", "run"),
        ("bash -lc x.sh", "bash"),
        ("sh -c x.sh", "sh"),
        ("Rscript --vanilla fit.R", "fit.R"),
        ("Rscript -e 1", "Rscript"),
        ("julia --project=. fit.jl", "fit.jl"),
        ("node -r dotenv/config app.js", "app.js"),
        ("perl -e 1", "perl"),
        ("ruby ./x.rb", "x.rb"),
        ("torchrun --nproc_per_node 4 train.py --lr 1", "train.py"),
        ("torchrun --standalone -m pkg.mod", "pkg.mod"),
        ("accelerate launch --num_processes 2 train.py", "train.py"),
        ("accelerate config", "accelerate"),
        ("uv run train.py", "train.py"),
        ("uv run pytest -q", "pytest"),
        ("uv run --with numpy python -u train.py", "train.py"),
        ("uv pip install x", "uv"),
        ("conda run -n env python train.py", "train.py"),
        ("conda run -n env tool", "conda"),
        ("nohup python train.py", "train.py"),
        ("mpirun -np 4 ./solve", "mpirun"),
        ("/usr/bin/env x", "env"),
        ("A=1 ./run.sh", "run.sh"),
        ("A=1 python train.py", "train.py"),
        ("/", "job"),
        ("A=1", "job"),
    ],
)
def test_a_job_is_named_after_its_script_or_program(line: str, name: str) -> None:
    assert default_name(line.split(" ")) == name


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["A=1 ./run.sh --fast"], "run.sh"),
        (["python train.py; echo done"], "train.py"),
        (["echo a; echo b"], "echo"),
        (["A=1", "B=2 nice make"], "nice"),
        (["   "], "   "),
        ([], "job"),
        (["x" * 200], "x" * 64),
    ],
)
def test_a_shell_line_is_named_after_its_first_command(
    words: list[str], name: str
) -> None:
    assert default_name(words) == name


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("python train.py --lr 0.1", "train.py"),
        ("/opt/py/bin/python3.11 -O -u -W ignore bin/train --x", "bin/train"),
        ("python -m pkg.train data.py", None),
        ("python -c code train.py", None),
        ("python - train.py", None),
        ("python", None),
        ("bash ./run.sh", "./run.sh"),
        # A shell looks for a plain name in its PATH as well.
        ("bash run.sh", None),
        ("bash -o pipefail /srv/run.sh", "/srv/run.sh"),
        ("julia -t 4 fit.jl", None),
        ("Rscript fit.R", "fit.R"),
        ("node server", None),
        ("torchrun train.py", None),
        ("./train.py data.py", None),
    ],
)
def test_the_file_that_an_interpreter_reads(line: str, script: str | None) -> None:
    assert script_of(line.split(" ")) == script


def test_an_option_of_python_takes_no_script_for_its_value() -> None:
    assert default_name(["python", "-O", "train.py", "0.1"]) == "train.py"
