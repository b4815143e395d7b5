"""Scripts as jobs: their directives, their execute bit, and their text from stdin."""

import subprocess
from pathlib import Path

import pytest

from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=slurm --partition=gpu
#GRASS -c 1 --time-limit 1-02:00:00
echo {id} $OMP_NUM_THREADS
"""


def piped(home: GrassHome, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    return home.run("enqueue", *words, input=text)


def test_a_scripts_directives_count_and_the_command_line_wins(
    shared: GrassHome, tmp_path: Path
) -> None:
    script = tmp_path / "fit.sh"
    script.write_text(SCRIPT)
    ran = shared.run("enqueue", "--name", "mine", "bash", str(script))
    assert "taken from #SBATCH: --job-name; left out: --partition" in ran.stderr
    job = shared.wait(int(ran.stdout))
    assert (job["name"], job["time_limit_s"]) == ("mine", 93600)
    assert shared.ok("logs", str(job["id"])) == "{id} 1\n"
    quiet = shared.run("enqueue", "-q", "bash", str(script))
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert shared.wait(int(quiet.stdout))["name"] == "slurm"
    plain = shared.enqueue("--no-directives", "bash", str(script))
    assert shared.wait(plain)["time_limit_s"] is None
    other = shared.enqueue("cat", str(script))
    assert shared.wait(other)["time_limit_s"] is None


def test_a_script_without_its_execute_bit_is_refused(
    shared: GrassHome, tmp_path: Path
) -> None:
    script = tmp_path / "fit.sh"
    script.write_text("#!/bin/sh\necho fitted\n")
    for words in ([str(script)], ["--", str(script)], ["A=1", str(script)]):
        refused = shared.run("enqueue", *words)
        assert refused.returncode == 2
        assert f"`{script}` is not executable (`chmod +x {script}`" in refused.stderr
    assert shared.wait(shared.enqueue("bash", str(script)))["state"] == "succeeded"
    script.chmod(0o755)
    assert shared.wait(shared.enqueue(str(script)))["state"] == "succeeded"


def test_a_script_may_come_from_stdin(shared: GrassHome) -> None:
    ran = piped(shared, SCRIPT, "-q")
    job = shared.wait(int(ran.stdout))
    assert (job["name"], job["time_limit_s"]) == ("slurm", 93600)
    assert shared.ok("logs", str(job["id"])) == "{id} 1\n"
    text = '#!/usr/bin/env python3\nid = 5\nprint(f"{id}")\n'
    job = shared.wait(int(piped(shared, text, "-").stdout))
    assert (job["name"], job["state"]) == ("stdin", "succeeded")
    assert shared.ok("logs", str(job["id"])) == "5\n"


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        ("", [], "no command was given"),
        (" \n", ["-"], "no command was given"),
        ("#" * 200_000, [], "the script has 200,000 bytes, and at most 131,071"),
        ("#!/usr/bin/awk -f\n{}", [], "a script for `awk` cannot come from stdin"),
        ("\n#GRASS --nope\n", [], "stdin, line 2: there is no option `--nope`"),
    ],
)
def test_a_script_from_stdin_that_cannot_run_is_refused(
    shared: GrassHome, text: str, words: list[str], told: str
) -> None:
    refused = piped(shared, text, *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert told in refused.stderr


def test_an_array_for_slurm_finds_its_indices_and_writes_its_own_files(
    shared: GrassHome, tmp_path: Path
) -> None:
    script = tmp_path / "grid.sh"
    lines = "#!/bin/bash", "#SBATCH --array=1-5:2", f"#SBATCH -o {tmp_path}/%A-%a.txt"
    script.write_text(
        "\n".join([*lines, "echo $SLURM_ARRAY_TASK_ID $SLURM_SUBMIT_DIR"])
    )
    ran = shared.run("enqueue", "-q", "bash", str(script))
    first = int(ran.stdout.split("-")[0])
    shared.wait(first, first + 1, first + 2)
    for index in (1, 3, 5):
        written = (tmp_path / f"{first}-{index}.txt").read_text()
        assert written == f"{index} {shared.desk}\n"
    line = "echo ${SLURM_ARRAY_TASK_ID-none}"
    plain = shared.wait(shared.enqueue("sh", "-c", line))
    assert shared.ok("logs", str(plain["id"])) == "none\n"
