"""The file of a pool: its options, its template, and what is wrong with it."""

from pathlib import Path

import pytest

from grass.cli.parsing.options import read
from grass.cli.parsing.pool_options import ADDING, pool_body
from grass.client.json_codec import Document
from grass.errors import UsageError

SITE = """\
slurm = true
max_workers = 8
time = "4h"
gpus = 1
memory = "8G"
options = ["--account=lab", "--qos=long"]
setup = ["module load cuda"]
omit = ["--mem"]
submit_prefix = ["ssh", "login 1"]
worker_prefix = ["apptainer", "exec", "torch.sif"]
python = "/opt/python"
"""


def body(tmp_path: Path, text: str, *words: str) -> Document:
    """Return the request that a file and options make."""
    path = tmp_path / "uni.toml"
    path.write_text(text)
    values, _ = read(ADDING, ["--file", str(path), *words])
    return pool_body(values, "uni")


def test_a_key_is_an_option(tmp_path: Path) -> None:
    made = body(tmp_path, SITE)
    assert (made["engine"], made["max_workers"], made["gpus"]) == ("slurm", 8, 1)
    assert (made["time_limit_s"], made["memory_mib"]) == (14400, 8192)
    assert made["options"] == ["--account=lab", "--qos=long"]
    assert made["setup"] == ["module load cuda"]
    assert made["omitted"] == ["--mem"]
    assert made["submit_prefix"] == ["ssh", "login 1"]
    assert made["worker_prefix"] == ["apptainer", "exec", "torch.sif"]
    assert made["python"] == "/opt/python"


def test_what_is_given_wins_over_the_file(tmp_path: Path) -> None:
    made = body(tmp_path, SITE, "--time=1h", "--option=--qos=short")
    assert made["time_limit_s"] == 3600
    assert made["options"] == ["--account=lab", "--qos=long", "--qos=short"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("walltime = 3\n", "uni.toml, line 1: there is no `walltime` (it is cpus, "),
        (
            "[qsub]\n",
            "worker_prefix, [submit], [check], [status], [states], [cancel])",
        ),
        (
            "time = ['4h']\n",
            "uni.toml, line 1: `time` has a wrong value (it is a text ",
        ),
        (
            "\nsetup = 'x'\n",
            "uni.toml, line 2: `setup` has a wrong value (it is a list",
        ),
        ("slurm = 1\n", "uni.toml, line 1: `slurm` has a wrong value (it is true or f"),
        ("[submit]\ncommand = 'x'\n", "uni.toml, line 2: `submit.command`: expected a"),
        ("[submit]\nid = '1'\n", "uni.toml: `submit.command`: it is missing (add it)"),
        ("time = \n", "uni.toml"),
    ],
)
def test_a_wrong_file_is_one_line_with_its_key(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(UsageError) as raised:
        body(tmp_path, text)
    assert words in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_a_file_that_is_not_there_is_named() -> None:
    values, _ = read(ADDING, ["--template", "/no/pbs.toml"])
    with pytest.raises(UsageError, match="there is no file /no/pbs"):
        pool_body(values, "pbs")


def test_two_schedulers_are_one_too_many(tmp_path: Path) -> None:
    text = "max_workers = 1\ntime = '1h'\n[submit]\ncommand = ['q']\nscript = '''\n"
    text += "#Q {mark}\nexec {command}'''\n[status]\ncommand = ['q']\nid = '(.)'\n"
    text += "mark = '(.)'\nstate = '(.)'\n[states]\npending = []\nrunning = ['R']\n"
    text += "[cancel]\ncommand = ['d', '{ids}']\n"
    assert body(tmp_path, text)["engine"] == "command"
    with pytest.raises(UsageError, match="one or the other"):
        body(tmp_path, text, "--slurm")


def test_gpus_are_also_written_as_slurm_does(tmp_path: Path) -> None:
    plain = 'slurm = true\nmax_workers = 8\ntime = "4h"\n'
    made = body(tmp_path, plain, "--gres=gpu:1")
    assert (made["gpus"], made["options"]) == (1, [])
    made = body(tmp_path, plain, "--gres=gpu:a100:2")
    assert (made["gpus"], made["options"]) == (2, ["--gres=gpu:a100:2"])
    for words in (["--gres=shard:2"], ["--gres=gpu"], ["--gres=gpu:1", "--gpus=1"]):
        with pytest.raises(UsageError, match="--gres"):
            body(tmp_path, plain, *words)
