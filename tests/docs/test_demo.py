"""The demo runs anywhere, tells its story, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import ROOT

pytestmark = pytest.mark.daemon


def start_demo(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, str(ROOT / "examples/demo.py")],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_demo_shows_jobs_in_order_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with start_demo(tmp_path) as demo:
        told, _ = demo.communicate(timeout=50)
    assert demo.returncode == 0
    assert "needs gpu 2, free 0 of 2" in told
    story = told.partition("started at")[2].splitlines()
    ended = {line.split()[2]: line.split()[-1] for line in story if " s " in line}
    assert ended == dict.fromkeys("1234", "succeeded") | {"5": "failed"}
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    with start_demo(tmp_path) as demo:
        assert demo.stdout is not None
        while not demo.stdout.readline().startswith("$ grass enqueue"):
            pass
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=50)
    assert demo.returncode == 130
    assert list(tmp_path.iterdir()) == []
