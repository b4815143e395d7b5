"""`%%grass`: cells of a notebook that run as jobs, in a real IPython."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import grass
from grass.errors import UsageError
from grass.model.jobs.commands import LONGEST_WORD
from grass.verbs.cell_magic import cell_words
from tests.docs.pages import ROOT, blocks
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome

SOURCE = str(Path(grass.__file__).parents[1])
NOTEBOOK = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
shell.run_cell("%load_ext grass", silent=True)
for cell in json.load(sys.stdin):
    done = shell.run_cell(cell)
    error = done.error_before_exec or done.error_in_exec
    print("[", "" if error is None else type(error).__name__, "]", flush=True)
"""
PAGE = (ROOT / "docs/how-to/python-jobs.md").read_text()


@pytest.fixture
def notebook(desk: GrassHome, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A notebook without its cells: these come as a JSON list on stdin."""
    env = {**os.environ, "PYTHONPATH": SOURCE, "IPYTHONDIR": str(tmp_path / "ipython")}
    with subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    ) as program:
        yield program
        program.kill()


@pytest.mark.daemon
def test_cells_run_as_jobs_and_show_what_they_write(
    desk: GrassHome, notebook: subprocess.Popen[str]
) -> None:
    cells = [
        "%%grass --name mine\nimport os; print(os.environ['GRASS_JOB_ID'], '{cpu}')",
        "%%grass bash -u\necho from $0; echo é >&2",
        "%%grass\nraise SystemExit(3)",
        "%%grass --nmae x\nprint(1)",
        "%%grass cat\nprint(1)",
        "%%grass -c 99999\nprint(1)",
    ]
    printed, _ = notebook.communicate(json.dumps(cells))
    ours = {one["name"]: one for one in desk.client.jobs()}
    assert printed.splitlines()[:5] == [
        f"{ours['mine']['id']} {{cpu}}",
        "[  ]",
        "from bash",
        "é",
        "[  ]",
    ]
    assert printed.count("[ CellFailed ]") == 4
    assert "CellFailed: the job of this cell failed with exit code 3" in printed
    assert "there is no option `--nmae` (did you mean `--name`?)" in printed
    assert "CellFailed: grass itself failed, as it says above, or the cell" in printed
    assert "it is not known how `cat` runs the code of a cell" in printed
    assert ours["cell"]["state"] == "failed"
    assert "Traceback" not in printed


@pytest.mark.daemon
def test_an_interrupt_cancels_the_job(
    desk: GrassHome, notebook: subprocess.Popen[str], news: Fifo
) -> None:
    cell = f"%%grass sh\necho $GRASS_JOB_ID > {news}; exec sleep 600"
    assert notebook.stdin is not None
    notebook.stdin.write(json.dumps([cell]))
    notebook.stdin.close()
    job = int(news.hear())
    notebook.send_signal(signal.SIGINT)
    assert notebook.stdout is not None
    assert notebook.stdout.read().endswith("[ KeyboardInterrupt ]\n")
    assert desk.state(job) == "cancelled"


@pytest.mark.daemon
def test_cells_of_the_page_run(
    desk: GrassHome, notebook: subprocess.Popen[str]
) -> None:
    desk.ok("capacity", "add", "{gpu:1}")
    cells = [cell.rstrip() for cell in blocks(PAGE, "ipython")]
    printed, _ = notebook.communicate(json.dumps(cells))
    assert cells[0] == "%load_ext grass"
    assert printed.count("[  ]") == len(cells), printed


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("", [sys.executable, "-c"]),
        ("-g 1 --name 'a b' python -O", ["python", "-O", "-c"]),
        ("-- bash", ["bash", "-c"]),
        ("Rscript --vanilla", ["Rscript", "--vanilla", "-e"]),
    ],
)
def test_the_first_other_word_is_the_program(line: str, program: list[str]) -> None:
    words = cell_words(line, "code")
    assert words[words.index("--") + 1 :] == [*program, "code"]
    given = words[: words.index("--")]
    assert ("--name" in given) == ("--name" in line)


@pytest.mark.parametrize(
    ("line", "cell", "told"),
    [
        ("--name 'x", "", "no closing quotation"),
        ("--pty", "", "there is no option"),
        ("", "é" * LONGEST_WORD, "save it as a file"),
    ],
)
def test_a_cell_that_cannot_run_is_refused(line: str, cell: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        cell_words(line, cell)
