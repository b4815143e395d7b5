"""The daemon killed again and again while jobs come in, run and end.

Every job writes its start and end into one ledger. Afterwards ledger, database and
output tell the same story: each acknowledged job ran exactly once.
"""

import contextlib
import random
import threading
import time
from collections import Counter

import pytest

from grass.errors import NoDaemon
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.processes import kill

pytestmark = pytest.mark.daemon

KILLS = 15
CODES = 5
LONGEST_LIFE_S = 0.5


class Caller(threading.Thread):
    """Somebody who goes on enqueueing whatever happens to the daemon."""

    def __init__(self, home: GrassHome) -> None:
        super().__init__()
        self._home = home
        self._enough = threading.Event()
        self.acknowledged: dict[int, int] = {}
        """Each job's id, and the number it was given here."""

    def run(self) -> None:
        number = 0
        while not self._enough.is_set():
            line = (
                f"echo start {number} >> ledger; echo {number}; sleep 0.0{number % 9}; "
                f"echo end {number} >> ledger; exit {number % CODES}"
            )
            cwd = str(self._home.desk)
            # A daemon killed on its way up is told before anything was sent.
            with contextlib.suppress(NoDaemon):
                id = self._home.client.enqueue(line, cwd=cwd, require="{cpu:0.25}")
                assert id not in self.acknowledged
                self.acknowledged[id] = number
                number += 1
            self._enough.wait(0.02)

    def stop(self) -> None:
        self._enough.set()
        self.join()


@pytest.mark.parametrize("seed", [1, 2])
def test_every_acknowledged_job_runs_exactly_once(home: GrassHome, seed: int) -> None:
    chance = random.Random(seed)
    caller = Caller(home)
    caller.start()
    try:
        for _ in range(KILLS):
            pid = _daemon(home)
            time.sleep(chance.random() * LONGEST_LIFE_S)
            kill(pid)
    finally:
        caller.stop()
    numbers = caller.acknowledged
    assert len(numbers) >= KILLS
    home.wait(*numbers)
    check_ledger(home, Counter(numbers.values()))
    check_database(home, numbers)
    for id, number in numbers.items():
        assert home.logs(id) == f"{number}\n"


def _daemon(home: GrassHome) -> int:
    """Return the daemon's pid as soon as there is one."""
    pid = until(home.daemon_pid, "there is no daemon")
    assert pid is not None
    return pid


def check_ledger(home: GrassHome, numbers: Counter[int]) -> None:
    lines = (home.desk / "ledger").read_text().splitlines()
    for word in ("start", "end"):
        told = [int(line.split()[1]) for line in lines if line.startswith(word)]
        assert Counter(told) == numbers


def check_database(home: GrassHome, numbers: dict[int, int]) -> None:
    ended = "JSON_EXTRACT(body, '$.exit_code')"
    rows = home.rows(f"SELECT id, attempts, {ended}, state FROM jobs")
    assert {row[0] for row in rows} == set(numbers)
    for id, attempts, code, state in rows:
        assert attempts == 1
        assert code == numbers[id] % CODES
        assert state == ("succeeded" if code == 0 else "failed")
