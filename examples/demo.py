"""Real jobs, in order, on two pretend GPUs: `make demo`.

Every command is printed before it runs, and is the real command line against a real
daemon in a state directory of its own. At the end, or at Ctrl-C, jobs, daemon and
directory are gone.
"""

import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

TRAIN = """\
import os, sys, time

gpu = os.environ["CUDA_VISIBLE_DEVICES"]
rate = sys.argv[1]
while not os.path.exists("go-on"):
    time.sleep(0.1)
for epoch in (1, 2, 3):
    time.sleep(0.5)
    print(f"gpu {gpu}  {rate}  epoch {epoch}  loss {1 / epoch:.2f}")
if rate == "lr=100":
    sys.exit("the loss is not a number any more")
"""
"""Jobs run until all was shown that needs them, however slow the machine is."""


class Stage:
    """A scratch directory with a grass of its own."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.interrupted = False
        own = {k: v for k, v in os.environ.items() if not k.startswith("GRASS_")}
        programs = os.path.dirname(sys.executable)
        self.environment = {
            **own,
            "PATH": f"{programs}:{own.get('PATH', os.defpath)}",
            "GRASS_HOME": os.path.join(folder, "home"),
        }
        Path(folder, "train.py").write_text(TRAIN)

    def grass(self, line: str) -> None:
        """Print a command line as a user would type it, and run it."""
        if self.interrupted:
            raise KeyboardInterrupt
        print(f"\n$ grass {line}", flush=True)
        self._run(shlex.split(line), stderr=subprocess.STDOUT)

    def go_on(self) -> None:
        """Let the jobs run to their ends."""
        Path(self.folder, "go-on").touch()

    def interrupt(self, *_signal: object) -> None:
        """End the demo before its next command.

        A command is never cut off half way: it may be starting a daemon, and nobody
        would be left to stop that one.
        """
        self.interrupted = True

    def jobs(self) -> list[dict[str, Any]]:
        """Return what is known of every job, in the order of their ids."""
        shown = self._run(["show", "--all", "--json"], stdout=subprocess.PIPE)
        jobs: list[dict[str, Any]] = json.loads(shown.stdout)["jobs"]
        return sorted(jobs, key=lambda job: int(job["id"]))

    def close(self) -> None:
        """End the jobs and the daemon."""
        self._run(["stop", "--jobs"], stdout=subprocess.DEVNULL)
        self._wait_for_keeper()

    def _run(
        self, words: list[str], stdout: int | None = None, stderr: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "grass", *words],
            cwd=self.folder,
            env=self.environment,
            stdout=stdout,
            stderr=stderr,
            text=True,
            check=False,
            process_group=0,
        )

    def _wait_for_keeper(self) -> None:
        """Return when the keeper has left, which holds its lock for life."""
        lock = Path(self.environment["GRASS_HOME"], "keeper", "lock")
        if lock.exists():
            with lock.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def stage() -> Iterator[Stage]:
    """Set a stage, and leave nothing of it behind."""
    with tempfile.TemporaryDirectory(prefix="grass-demo-") as folder:
        made = Stage(folder)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, made.interrupt)
        try:
            yield made
        finally:
            made.close()


def say(text: str) -> None:
    """Tell what comes next."""
    print(f"\n# {text}", flush=True)


def play(on: Stage) -> None:
    """Show what a queue on two GPUs does."""
    say("A queue with two GPUs. No daemon runs yet: the first command starts one.")
    on.grass("create-queue q1 --capacity '{gpu:2}' --default-require '{gpu:1}'")
    say("Two jobs that need half a GPU each, and one that needs a whole one.")
    on.grass("enqueue q1 -g 0.5 -- python train.py lr=0.1")
    on.grass("enqueue q1 -g 0.5 -- python train.py lr=0.2")
    on.grass("enqueue q1 -g 1 -- python train.py lr=0.3")
    say("Both GPUs are full now. The next one needs both; the last one will fail.")
    on.grass("enqueue q1 -g 2 --name both -- python train.py lr=0.4")
    on.grass("enqueue q1 -g 1 --name wild -- python train.py lr=100")
    say("What runs where, and why the others wait:")
    on.grass("show")
    say("A request that can never be met is refused at once:")
    on.grass("enqueue q1 -g 3 -- python train.py lr=0.5")
    say("The daemon may be restarted; running jobs do not notice.")
    on.grass("restart")
    on.go_on()
    on.grass("wait all")
    say("All have ended. One failed; this is what it wrote:")
    on.grass("show q1")
    on.grass("logs 5")
    say(
        "The order they started in. A job that fits into a gap may go before a larger\n"
        "# one, a bounded number of times; then units are kept for the larger one."
    )
    print("\n" + story(on.jobs()))


def story(jobs: list[dict[str, Any]]) -> str:
    """Tell in which order the jobs started, on which units, and how they ended."""
    started = sorted(jobs, key=lambda job: str(job["started_at"]))
    first = str(started[0]["started_at"])
    lines = ["started at    job  units            ended as"]
    for job in started:
        seconds = _seconds_between(first, str(job["started_at"]))
        units = _units(job["attempts"][-1]["allocation"])
        lines.append(f"{seconds:8.2f} s  {job['id']:>4}  {units:<15}  {job['state']}")
    return "\n".join(lines)


def _seconds_between(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _units(allocation: dict[str, dict[str, float]]) -> str:
    return "  ".join(
        f"{amount:g} of {kind} {unit}" if amount < 1 else f"{kind} {unit}"
        for kind, units in allocation.items()
        for unit, amount in units.items()
    )


def main() -> int:
    """Play the demo; Ctrl-C ends it cleanly."""
    try:
        with stage() as on:
            play(on)
    except KeyboardInterrupt:
        print("\nstopped; nothing is left behind")
        return 130
    print("\nThat was all of it; nothing is left behind. README.md goes on from here.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
