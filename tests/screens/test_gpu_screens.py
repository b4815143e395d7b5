"""What `gpu` and `profile` show on a terminal, compared with those in `golden/`."""

import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.support.gpus import FakeGpus
from tests.support.homes import GrassHome
from tests.support.patience import until

from .scenario import PLAYED
from .terminal import GOLDEN, LOOKS, SIZES, Terminal

pytestmark = [
    pytest.mark.daemon,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]

DAY_US = 86_400 * 10**6
CASES = {
    "gpu-80-colour": ("gpu", ""),
    "gpu-80-plain": ("gpu", ""),
    "gpu-80-ascii": ("gpu", ""),
    "gpu-120-colour": ("gpu", ""),
    "gpu-oneline-80-plain": ("gpu --oneline", ""),
    "gpu-oneline-120-colour": ("gpu --oneline", ""),
    "gpu-watch-80x24-plain": ("gpu --watch", "q quits"),
    "top-120x24-colour": ("top", "sleep (pid"),
    "profile-80-plain": ("profile", ""),
    "profile-120-colour": ("profile", ""),
    "profile-show-80-plain": ("profile show train.py", ""),
}
"""By the name of the file: the command, and what shows that its screen is drawn."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrassHome]:
    """A machine with three GPUs, one of them lost, two jobs and a stranger."""
    folder = tmp_path_factory.mktemp("gpus")
    gpus = FakeGpus(folder / "gpus")
    card = {"name": "NVIDIA A100-SXM4-80GB", "memory": "80G", "reserved": "600M"}
    gpus.device(0, **card, utilization=87, temperature=61, power_mw=312_000)
    gpus.device(1, **card, utilization=0, temperature=35)
    gpus.device(2, **card)
    made = GrassHome(folder)
    made.environment.update(gpus.environment)
    gpus.program(made)
    made.ok("start", "--name", "desk")
    first = made.enqueue("-g", "0.5", "--name", "train.py", "use-gpu", "31G", "70")
    until(lambda: made.state(first), "no start", lambda it: it == "running")
    second = made.enqueue("-g", "0.5", "--name", "evaluate", "--", "sleep", "1000")
    until(lambda: made.state(second), "no start", lambda it: it == "running")
    other = subprocess.Popen(["sleep", "1000"])
    gpus.process(1, other.pid, "6G")
    gpus.fault(2, "lost")
    held = '"jobs":33285996544'
    until(lambda: made.ok("gpu", "--json"), "not all is there", lambda it: held in it)
    _learn(made)
    _add_others(made)
    yield made
    other.kill()
    other.wait()
    made.end()


def _add_others(home: GrassHome) -> None:
    """Have jobs in other states, which are on no GPU."""
    nothing = ("--require", "{}")
    home.wait(home.enqueue(*nothing, "--name", "prepare", "true"))
    home.wait(home.enqueue(*nothing, "--name", "score.py", "exit 3"))
    home.enqueue_array(*nothing, "--array", "1-8%2", "--name", "fold", "sleep 1000")
    home.enqueue("--after", "1", "-g", "1", "--name", "test", "python test.py")
    home.enqueue("--hold", "--name", "report", "python report.py > report.txt")
    until(
        lambda: home.client.overview()["totals"],
        "the jobs never came to where they wait",
        lambda totals: totals.get("running") == 4,
    )


def _learn(home: GrassHome) -> None:
    """Have three types known, one of which could not be measured."""
    at = time.time_ns() // 1000 - 3 * DAY_US - DAY_US // 2
    ends = {"train.py": (3, 3.2, 2.9), "sweeps/large.py::fit": (40.5,), "new.py": ()}
    lines = [
        {
            "job_type": name,
            "model": "NVIDIA A100-SXM4-80GB",
            "samples": [
                {"job": job, "at": at, "peak": int(gib * 2**30), "ran_s": 90.0}
                for job, gib in enumerate(peaks, 70)
            ],
            "runs": len(peaks),
            "failures": 0 if peaks else 2,
        }
        for name, peaks in ends.items()
    ]
    file = home.desk / "profiles.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    home.ok("profile", "import", str(file))


@pytest.mark.parametrize("name", CASES)
def test_a_screen_is_as_it_was_kept(home: GrassHome, tmp_path: Path, name: str) -> None:
    line, shown = CASES[name]
    size, look = name.rsplit("-", 2)[1:]
    environment = {**_environment(home), **LOOKS[look]}
    command = [*home.grass, *line.split()]
    if line == "top":
        command = [sys.executable, PLAYED, line]
        environment |= _an_hour_later(home)
    with Terminal(tmp_path, SIZES[size], command, environment) as terminal:
        if shown:
            terminal.showing(shown)
        else:
            terminal.ended()
        _compare(f"{name}.txt", terminal.screen())


def _environment(home: GrassHome) -> dict[str, str]:
    names = ("GRASS_HOME", "PATH")
    return {name: home.environment[name] for name in names}


def _an_hour_later(home: GrassHome) -> dict[str, str]:
    """Have the clock stand still, for what has ages on it."""
    last = datetime.fromisoformat(home.client.job("last")["created_at"])
    later = last + timedelta(hours=1)
    root = str(Path(__file__).parents[2])
    return {"PLAYED_NOW": later.isoformat(), "PYTHONPATH": root}


def _compare(name: str, screen: str) -> None:
    """Compare a screen with the kept one, without what differs between machines."""
    screen = "\n".join(map(_masked, screen.split("\n")))
    file = GOLDEN / name
    if os.environ.get("GRASS_SCREENS") == "write":
        file.write_text(screen)
    assert screen == file.read_text(), f"`make screens` writes {file} anew"


def _masked(line: str) -> str:
    """Put another pid, user and age into a line, and drop columns as wide as these."""
    line = re.sub(r"\bfor (\d+[hms])+", "for 9s", line)
    user = re.escape(pwd.getpwuid(os.geteuid()).pw_name)
    masked = re.sub(rf"\b{user}\b", "you", re.sub(r"\bpid \d+", "pid 4711", line))
    has_columns = re.match(r"(\[yellow\])?  (job|stranger)\b", masked)
    return re.sub(r"(?<=\S) {2,}", "  ", masked) if has_columns else masked
