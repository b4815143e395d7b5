"""Twenty short jobs a second for minutes: what grows that should not?

`python -m tests.fault.soak --minutes 10` runs twice that long, first without and then
with a restart of the daemon every minute, and prints a row for each.
"""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.fault.witness import Verdict, judge, line
from tests.support.homes import GrassHome

JOBS_PER_S = 20
SAMPLE_S = 1.0
SETTLED_S = 60.0
RESTART_S = 60.0
MOST_GROWTH_MB = 5.0
MOST_DESCRIPTORS = 5
"""How many more descriptors than at first pass for flat."""


class Sample(NamedTuple):
    """A process at one moment."""

    at: float
    memory_mb: float
    descriptors: int
    zombies: int


class Watched:
    """The daemon or the keeper over time, whichever process that is."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._dead: set[int] = set()

    def look(self, pid: int | None, at: float) -> None:
        """Take a sample; a process that is being replaced is passed over."""
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            resident = status.partition("VmRSS:")[2].split()
            if not resident:
                return
            descriptors = len(os.listdir(f"/proc/{pid}/fd"))
            memory_mb = int(resident[0]) / 1024
            zombies = self._zombies_of(pid)
            self.samples.append(Sample(at, memory_mb, descriptors, zombies))

    def _zombies_of(self, pid: int | None) -> int:
        """Count the dead children that were dead a sample ago already."""
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        dead = {int(child) for child in children if _is_dead(child)}
        lasting = len(dead & self._dead)
        self._dead = dead
        return lasting

    def settled(self, from_s: float) -> list[Sample]:
        """Give the samples from a time on."""
        return [one for one in self.samples if one.at >= from_s]


class Figures(NamedTuple):
    """What became of one process's memory and descriptors."""

    first_mb: float
    growth_mb: float
    descriptors: int
    more_descriptors: int
    zombies: int

    @property
    def flat(self) -> bool:
        """Tell whether nothing grew that should not."""
        few = self.more_descriptors <= MOST_DESCRIPTORS
        return self.growth_mb <= MOST_GROWTH_MB and few and not self.zombies

    def __str__(self) -> str:
        return (
            f"{self.first_mb:.1f} MB, within {self.growth_mb:.1f} MB; "
            f"descriptors {self.descriptors}, at most {self.more_descriptors} more; "
            f"zombies {self.zombies}"
        )


def figures(samples: list[Sample]) -> Figures:
    """Compare what came later with the first quarter."""
    memory = [one.memory_mb for one in samples]
    early = samples[: max(1, len(samples) // 4)]
    most = max(one.descriptors for one in early)
    return Figures(
        first_mb=memory[0],
        growth_mb=max(memory) - min(memory),
        descriptors=most,
        more_descriptors=max(0, max(one.descriptors for one in samples) - most),
        zombies=max(one.zombies for one in samples),
    )


class Soak:
    """One run on one home."""

    def __init__(self, home: GrassHome) -> None:
        self.home = home
        self.daemon, self.keeper = Watched(), Watched()
        self.restarts = 0
        self._ledger = home.desk / "ledger"
        self._numbers: dict[int, int] = {}

    def run(self, seconds: float, restart_every_s: float | None) -> Verdict:
        """Enqueue at an even rate, look every second, and judge at the end."""
        self.home.ok("start")
        began = time.monotonic()
        looked = restarted = 0.0
        for number in range(1, int(seconds * JOBS_PER_S) + 1):
            self._enqueue(number)
            now = time.monotonic() - began
            if now - looked >= SAMPLE_S:
                looked = now
                self.daemon.look(self.home.daemon_pid(), now)
                self.keeper.look(self.home.keeper_pid(), now)
            if restart_every_s is not None and now - restarted >= restart_every_s:
                restarted = now
                self.home.restart()
                self.restarts += 1
            time.sleep(max(0.0, began + number / JOBS_PER_S - time.monotonic()))
        self.home.wait(*list(self._numbers)[-JOBS_PER_S:])
        self.home.client.wait([f"1-{max(self._numbers)}"], 60.0)
        return judge(self.home, self._ledger, self._numbers)

    def _enqueue(self, number: int) -> None:
        command = line(self._ledger, number, 0.01 * (number % 6))
        job = self.home.client.enqueue(
            command, name=str(number), cwd=str(self.home.desk), require="{cpu:0.1}"
        )
        self._numbers[job] = number


def _is_dead(pid: str) -> bool:
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/stat").read_text()
        return text.rpartition(")")[2].split()[0] == "Z"
    return False


def soak(seconds: float, restart_every_s: float | None) -> bool:
    """Do one run and print its rows; tells whether all is as it should be."""
    folder = Path(tempfile.mkdtemp(prefix="grass-soak-"))
    run = Soak(GrassHome(folder))
    try:
        verdict = run.run(seconds, restart_every_s)
    finally:
        run.home.end()
    settled_s = min(SETTLED_S, seconds / 4)
    keeper = figures(run.keeper.settled(settled_s))
    daemon = figures(run.daemon.settled(settled_s))
    jobs = int(seconds * JOBS_PER_S)
    fine = verdict.fine and not verdict.called_lost and keeper.flat
    if restart_every_s is None:
        fine = fine and daemon.flat
    _say(f"soak of {seconds / 60:g} minutes, {run.restarts} restarts: {jobs} jobs")
    _say(f"  lost {len(verdict.lost) + len(verdict.called_lost)}, run twice "
         f"{len(verdict.twice)}, wrong exit codes {len(verdict.wrong)}")  # fmt: skip
    _say(f"  daemon {daemon}")
    _say(f"  keeper {keeper}")
    _say("  as it should be" if fine else "  NOT as it should be")
    shutil.rmtree(folder)
    return fine


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Soak without and with restarts; returns 1 when something grew or got lost."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--restart-every", type=float, default=RESTART_S)
    asked = parser.parse_args()
    seconds = asked.minutes * 60
    steady = soak(seconds, None)
    restarted = soak(seconds, asked.restart_every)
    return 0 if steady and restarted else 1


if __name__ == "__main__":
    sys.exit(main())
