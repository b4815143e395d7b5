"""Grain's files, as people have them, read as pools."""

import os
import subprocess
from pathlib import Path

import pytest

from grass.cli.parsing.grain_file import read_grain_file
from grass.client.json_codec import Document
from grass.engines import filling
from grass.engines.provider import PilotRequest
from grass.errors import UsageError
from grass.model.command_templates import template_from

OF_0_11 = """\
[head]
addr = "10.0.0.1"

[worker]
system = "slurm"
log_dir = "/scratch/ada/log"

[worker.script]
PPN = 16
MPN = 30
queue = "general"
walltime = "48:00:00"
extra_args = ["-A lab", "--mail-type=FAIL"]
setup_cleanup = '''
module load python
mkdir -p /tmp/$USER
defer rm -rf /tmp/$USER
source env.sh
defer echo bye'''
"""
OF_0_17 = """\
system = "slurm"
address = "tcp://10.0.0.1:4242"

[script]
queue = "general"
walltime = "1-02:03:04"

[worker]
name = "w{{HHMMSS}}"
log_file = "log/w{{HHMMSS}}.log"

[worker.script]
cores = 4
memory = 15
"""
CUSTOM = """\
[custom_system]
submit_cmd = "bsub"
directory = "#BSUB"
template = '''{c.script.shebang}
#BSUB -J {c.name}
#BSUB -n {c.script.cores}
{c.script.extra_args_str}
x=${{HOME}}
{{MAIN}}
'''

[worker.script]
cores = 2
extra_args = ["-q short"]
setup_cleanup = "module load gcc"
"""


def body(tmp_path: Path, text: str) -> Document:
    path = tmp_path / "grain.toml"
    path.write_text(text)
    return read_grain_file(str(path), "grain")


def lines(made: Document) -> list[str]:
    """Return the script of a worker, without the time in it."""
    template = template_from(made["template"])
    request = PilotRequest(
        mark="m1",
        name="grass-grain",
        command=("python", "pilot.py", "m1"),
        directory="/d",
        output="/o",
        time_limit_s=made["time_limit_s"],
        cpus=made["cpus"],
        memory_mib=made["memory_mib"],
    )
    now = filling.values_of(request)["hhmmss"]
    assert now is not None
    script = filling.script_of(template.submit.script, request)
    return [line for line in script.replace(now, "NOW").splitlines() if line]


def test_a_file_of_the_seeds_release_makes_the_script_it_made(tmp_path: Path) -> None:
    made = body(tmp_path, OF_0_11)
    assert (made["cpus"], made["memory_mib"]) == (16, 28672)
    assert made["time_limit_s"] == 48 * 3600
    script = lines(made)
    assert script[:10] == [
        "#!/bin/bash",
        "#SBATCH -J wNOW",
        "#SBATCH -p general",
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks-per-node=16",
        "#SBATCH --mem=30G",
        "#SBATCH --time=48:00:00",
        "#SBATCH -o /scratch/ada/log/wNOW.log",
        "#SBATCH -A lab",
        "#SBATCH --mail-type=FAIL",
    ]
    rest = script[10:]
    first = rest.index("module load python")
    assert rest[first : first + 3] == [
        "module load python",
        "mkdir -p /tmp/$USER",
        "source env.sh",
    ]
    assert "python pilot.py m1 &" in rest
    assert rest[-2:] == ["echo bye", "rm -rf /tmp/$USER"]


def test_the_worker_table_of_a_later_release_wins(tmp_path: Path) -> None:
    made = body(tmp_path, OF_0_17)
    assert made["time_limit_s"] == 26 * 3600 + 184
    script = lines(made)
    assert "#SBATCH --ntasks-per-node=4" in script
    assert "#SBATCH --time=1-02:03:04" in script
    assert "#SBATCH -o log/wNOW.log" in script
    assert made["template"]["status"]["command"][0] == "squeue"


def test_pbs_is_asked_in_its_own_words(tmp_path: Path) -> None:
    made = body(tmp_path, OF_0_17.replace('"slurm"', '"PBS"'))
    script = lines(made)
    assert script[1:4] == [
        "#PBS -N wNOW",
        "#PBS -q general",
        "#PBS -l nodes=1:ppn=4,walltime=1-02:03:04",
    ]
    assert "cd $PBS_O_WORKDIR" in script
    assert made["template"]["submit"]["command"][4:] == [
        "qsub",
        "-v",
        "GRASS_MARK={mark}",
        "{options}",
    ]


def test_a_custom_system_has_its_own_template(tmp_path: Path) -> None:
    made = body(tmp_path, CUSTOM)
    script = lines(made)
    assert script[:5] == [
        "#!/bin/bash",
        "#BSUB -J wNOW",
        "#BSUB -n 2",
        "#BSUB -q short",
        "x=${HOME}",
    ]
    assert "module load gcc" in script
    assert "status" not in made["template"]


def test_what_is_deferred_runs_after_the_worker_also_when_it_is_ended(
    tmp_path: Path,
) -> None:
    script = "\n".join(lines(body(tmp_path, CUSTOM)))
    script = script.replace("module load gcc", "echo before").replace(
        "python pilot.py m1 &",
        'sh -c \'trap "echo ended; exit" TERM; echo up; '
        "while :; do sleep 0.05; done' &",
    )
    script += "\necho after\n"
    with subprocess.Popen(
        ["bash", "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line.strip())
            if line == "up\n":
                process.terminate()
    assert [one for one in seen if one in ("before", "up", "ended", "after")] == [
        "before",
        "up",
        "ended",
        "after",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("system = 'lsf'\n", "line 1: there is no system `lsf` (slurm, pbs, or"),
        ("", "there is no system ``"),
        (OF_0_11.replace("16", "'16'"), "line 9: `PPN` is a whole number, not `16`"),
        (OF_0_11.replace("48:00:00", "2 days"), "`2 days` is no walltime"),
        (CUSTOM.replace("{{MAIN}}", ""), "line 4: it has no {{MAIN}}"),
        (CUSTOM.replace("{c.name}", "{c.nom}"), "line 4: there is no {c.nom}"),
        (CUSTOM.replace("submit_cmd", "submit"), "`custom_system.submit_cmd` is miss"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        body(tmp_path, text)
    assert words in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path}{os.sep}grain.toml")
    assert len(str(raised.value).splitlines()) == 1
