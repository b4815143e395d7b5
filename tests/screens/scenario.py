"""The jobs that are on every screen: some of each kind, which wait for a named pipe."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import until

PLAYED = str(Path(__file__).with_name("played.py"))
FOLD = """
import os, sys
seed = int(sys.argv[1].partition("=")[2])
if seed > 3:
    open(os.environ["GATE"]).readline()
sys.exit(seed == 3)
"""
TRAIN = """
import os
print("epoch 1 loss 0.71", flush=True)
open(os.environ["GATE"]).readline()
print("epoch 2 loss 0.34", flush=True)
"""
SCORE = """
import sys
print("reading", end="")
for part in range(0, 101, 20):
    print(f"\\rreading {part:3}%", end="")
print()
sys.exit("no such set: " + " ".join(sys.argv[1:]))
"""
STATES = {"running": 4, "queued": 9, "waiting": 1, "held": 1}
"""How many jobs are in each state once all has been set up."""


class Scenario:
    """A home with a daemon of a played machine, and its jobs."""

    def __init__(self, folder: Path) -> None:
        self.home = GrassHome(folder)
        self.home.grass = (sys.executable, PLAYED)
        self.gate = Fifo(folder / "gate")
        root = Path(__file__).parents[2]
        self.home.environment |= {
            "GATE": str(self.gate),
            "PYTHONPATH": str(root),
            "GRASS_AUTOSTART": "0",
            "TZ": "UTC",
        }
        scripts = {"fold.py": FOLD, "train.py": TRAIN, "score.py": SCORE}
        for name, text in scripts.items():
            (self.home.desk / name).write_text(text)
        self._daemon = subprocess.Popen(
            [*self.home.grass, "daemon", "--name", "desk"],
            env=self.home.environment,
            cwd=self.home.desk,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: self.home.run("show").returncode == 0, "no daemon came up")
        self._enqueue()
        self._later = datetime.now(UTC) + timedelta(hours=1)

    @property
    def environment(self) -> dict[str, str]:
        """What the commands on a terminal have in their environment."""
        names = ("GRASS_HOME", "PYTHONPATH", "GRASS_AUTOSTART", "TZ", "PATH")
        chosen = {name: self.home.environment[name] for name in names}
        return {**chosen, "PLAYED_NOW": self._later.isoformat()}

    def end(self) -> None:
        """End all of it."""
        self.home.end()
        self._daemon.wait()
        self.gate.close()

    def _enqueue(self) -> None:
        home = self.home
        home.ok("create-queue", "q1", "--capacity", "{gpu:2}")
        for words in (
            ["--name", "prepare", "--", "true"],
            ["--", "python", "score.py", "--set", "held out"],
            ["kill -9 $$"],
        ):
            home.wait(home.enqueue(*words))
        cancelled = home.enqueue("--hold", "--", "python", "train.py", "lr=9")
        home.ok("cancel", str(cancelled))
        for rate in ("0.1", "0.2"):
            home.enqueue("q1", "-g", "0.5", "--", "python", "train.py", f"lr={rate}")
        array = ("-c", "2", "--array", "1-12%2", "--", "python", "fold.py")
        home.enqueue_array(*array, "seed={index}")
        big = ("q1", "-g", "2", "--name", "large", "--", "python", "train.py")
        first = home.enqueue(*big, "lr=0.3", "note=two words")
        home.enqueue(*big, "lr=0.4")
        home.enqueue("--after", str(first), "--", "python", "score.py")
        home.enqueue("--hold", "--name", "report", "python score.py > report.txt")
        until(
            lambda: home.client.overview()["totals"],
            "the jobs never came to where they wait",
            lambda totals: totals | STATES == totals,
        )
