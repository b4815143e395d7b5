"""Options at the head of a script: `#GRASS`, and `#SBATCH` where it means the same."""

import os
from typing import Any

import pytest

from grass.cli.commands import enqueue, run
from grass.cli.parsing.directives import Directives, merged
from grass.cli.parsing.enqueue_line import EnqueueLine
from grass.cli.parsing.options import Values
from grass.errors import NeverFits, UsageError


def read(*words: str) -> EnqueueLine:
    line = EnqueueLine(enqueue.OPTIONS, words)
    line.find_queue({"q1": []}.get)
    return line


def fields(head: str) -> dict[str, Any]:
    found = Directives("x.sh", head, enqueue.OPTIONS).fields
    return {name: found[name] for name in found if name != "sbatch"}


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("#!/bin/sh\n#GRASS -g 1 --time-limit 2h\n", {"gpu": 1, "time_limit_s": 7200}),
        ("# a comment\n\n#GRASS -g 1\n#GRASS -g 2 # why\n", {"gpu": 2}),
        ("#GRASS --name 'a b'", {"name": "a b"}),
        ("#GRASS --queue q", {"queue": "q"}),
        ("echo\n#GRASS -g 1\n", {}),
        ('"""A docstring."""\n#GRASS -g 1\n', {}),
        ("#GRASSHOPPER -g 1\n# GRASS -g 1\n #GRASS -g 1\n#GRASS\n", {}),
    ],
)
def test_the_comment_block_at_the_head_is_read(
    head: str, expected: dict[str, Any]
) -> None:
    found = fields(head)
    assert {**found.pop("require_also", {}), **found} == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--job-name=fit", {"name": "fit"}),
        ("-J fit", {"name": "fit"}),
        ("--time=90", {"time_limit_s": 5400}),
        ("-t 10:30", {"time_limit_s": 630}),
        ("--time=1:00:00", {"time_limit_s": 3600}),
        ("--time=1-02", {"time_limit_s": 93600}),
        ("--time=1-02:30", {"time_limit_s": 95400}),
        ("--time=1-02:00:00", {"time_limit_s": 93600}),
        ("--time=UNLIMITED", {}),
        ("--gres=gpu:2", {"require_also": {"gpu": 2}}),
        ("--gres=gpu:a100:2", {"require_also": {"gpu": 2}}),
        ("--gres=gpu", {"require_also": {"gpu": 1}}),
        ("--gpus=2", {"require_also": {"gpu": 2}}),
        ("-G a100:4", {"require_also": {"gpu": 4}}),
        ("-c4", {"require_also": {"cpu": 4}}),
        ("--mem=4000", {"require_also": {"ram": "4000M"}}),
        ("--mem=8G", {"require_also": {"ram": "8G"}}),
        ("-c 2 --mem-per-cpu=1G", {"require_also": {"cpu": 2, "ram": "2G"}}),
        ("--array=0-15%4", {"array": "0-15%4"}),
        ("--hold", {"hold": True}),
        ("--requeue", {"retry_lost": 1}),
        ("--nice", {"priority": -100}),
        ("--signal=B:USR1@60", {"limit_signal": "USR1@60"}),
        (
            "--dependency=afterok:7:9,afterany:8",
            {"after": ["7:succeeded", "9:succeeded", "8:any"]},
        ),
        ("--export=ALL,A=1", {"env": {"A": "1"}}),
        ("--output=/o/%x-%j_%a.%%", {"output": "/o/{name}-{id}_{index}.%"}),
        ("-o /o/%A.%N", {"output": "/o/{SLURM_ARRAY_JOB_ID}.{SLURMD_NODENAME}"}),
        ("-e /o/%j.err", {"stderr": "/o/{id}.err"}),
        ("--chdir=/tmp", {"cwd": "/tmp"}),
        ("-N 1 --ntasks=1 # one", {}),
    ],
)
def test_lines_for_slurm_mean_what_slurm_means(
    line: str, expected: dict[str, Any]
) -> None:
    assert fields(f"#SBATCH {line}\n") == expected


@pytest.mark.parametrize(
    "line",
    [
        *("--partition=gpu", "-A lab", "--nodes=2", "--gres=tmp:1", "--exclusive"),
        *("--output=/o/%u", "--dependency=singleton", "--mem=0", "--begin=teatime"),
        *("--export=NONE", "--mail-type=END", "--gres=gpu:1,tmp:1"),
    ],
)
def test_what_does_not_map_is_named_and_left_out(line: str) -> None:
    script = Directives("x.sh", f"#SBATCH {line}\n#SBATCH -J a\n", enqueue.OPTIONS)
    assert script.fields.pop("sbatch")["options"][-1] == "job-name"
    assert script.fields == {"name": "a"}
    assert script.told.startswith("x.sh: taken from #SBATCH: --job-name; left out: --")


def test_an_array_is_left_out_where_one_job_runs() -> None:
    script = Directives("x.sh", "#SBATCH --array=1-3\n", run.OPTIONS)
    assert script.fields.keys() == {"sbatch"}
    assert "left out: --array" in script.told


def test_a_script_with_lines_for_slurm_is_noted_as_one() -> None:
    head = "#GRASS -c 2\n#SBATCH -p gpu --ntasks=4\n"
    script = Directives("x.sh", head, enqueue.OPTIONS)
    assert script.fields["sbatch"] == {
        "options": ["partition", "ntasks"],
        "directory": os.getcwd(),
        "host": os.uname().nodename,
    }
    assert "sbatch" not in Directives("x.sh", "#GRASS -c 2\n", enqueue.OPTIONS).fields


def test_own_directives_win_over_those_for_slurm() -> None:
    head = "#GRASS -g 1 --name b\n#SBATCH -G 2 -c 3 -J a\n"
    assert fields(head) == {"name": "b", "require_also": {"gpu": 1, "cpu": 3}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("#GRASS --time-limt 2h", "there is no option `--time-limt`"),
        ("#GRASS -g many", "--gpu must be a number, not `many`"),
        ("#GRASS --broker a:1", "there is no option `--broker`"),
        ("#GRASS train.py", "`train.py` is no option"),
        ("#GRASS --help", "--help is no option of a job"),
        ("#GRASS --name 'a", "no closing quotation"),
        ("#SBATCH --time=soon", "--time `soon` is not a time"),
        ("#SBATCH --mem=much", "--mem `much` is not a size"),
        ("#SBATCH --time", "--time needs a value"),
        ("#SBATCH --a\x1b[31m=1", "`--a\x1b[31m=1` is no option of sbatch"),
        ("#SBATCH -", "`-` is no option of sbatch"),
        ("#SBATCH word", "`word` is no option of sbatch"),
    ],
)
def test_an_error_names_file_line_and_option(line: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        fields(f"#!/bin/sh\n{line}\n")
    assert caught.value.message.startswith(f"x.sh, line 2: {message}")


def test_the_daemons_error_names_the_line_that_it_is_about() -> None:
    script = Directives("x.sh", "#GRASS -g 9\n#GRASS --name a\n", enqueue.OPTIONS)
    error = NeverFits("gpu: asked 9, the most is 2")
    told, given = NeverFits, read("-g", "9", "--", "ls").values
    with pytest.raises(told, match=r"x.sh, line 1: gpu"), script.errors(Values()):
        raise error
    with pytest.raises(told, match=r"^gpu: asked 9"), script.errors(given):
        raise error


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        ({"name": "a"}, {"name": "b"}, {"name": "b"}),
        ({"env": {"A": "1"}}, {"env": {"B": "2"}}, {"env": {"A": "1", "B": "2"}}),
        (
            {"require_also": {"gpu": 1, "cpu": 2}},
            {"require_also": {"gpu": 2}},
            {"require_also": {"gpu": 2, "cpu": 2}},
        ),
        ({"require_also": {"gpu": 1}}, {"require": "{}"}, {"require": "{}"}),
        (
            {"require": "{gpu:1}"},
            {"require_also": {"gpu": 2}},
            {"require": "{gpu:1}", "require_also": {"gpu": 2}},
        ),
    ],
)
def test_options_of_the_command_line_win(
    below: dict[str, Any], above: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert merged(below, above) == expected
