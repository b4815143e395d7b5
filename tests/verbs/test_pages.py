"""The programs of the page about jobs from Python print what it shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import grass
from tests.docs.pages import ROOT, blocks, steps
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S

PAGE = (ROOT / "docs/how-to/python-jobs.md").read_text()
FILES = [one.file for one in steps(PAGE) if one.file is not None]
SOURCE = str(Path(grass.__file__).parents[1])


@pytest.mark.daemon
@pytest.mark.parametrize(
    ("file", "shown"),
    list(zip(FILES, blocks(PAGE, "text"), strict=True)),
    ids=[name for name, _ in FILES],
)
def test_a_program_prints_what_the_page_shows(
    desk: GrassHome, file: tuple[str, str], shown: str
) -> None:
    name, code = file
    Path(name).write_text(code)
    ran = subprocess.run(
        [sys.executable, name],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": SOURCE},
        timeout=PATIENCE_S,
    )
    assert ran.stdout == shown + "\n", ran.stderr
