"""SIGKILL for daemon, keeper and runners in mid-task; the functions keep a ledger."""

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import cloudpickle
import pytest

import grass
from grass.verbs import task_jobs
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S, until
from tests.support.processes import kill

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

TASKS = 60
# Its runner is killed in it; it goes on for as long as that may take.
VICTIM = 15


@pytest.fixture
def ledger(home: GrassHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Be a program of this home's user, whose functions write down what they do."""
    for name in ("GRASS_HOME", "PATH"):
        monkeypatch.setenv(name, home.environment[name])
    monkeypatch.chdir(home.desk)
    monkeypatch.setattr(task_jobs, "_uploaded", {})
    # A runner has no module of tests.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield home.desk / "ledger"
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def noted(path: str, number: int) -> int:
    """Write down that a task has begun and ended, and by which process."""
    note(path, f"begun {number} {os.getpid()}")
    time.sleep(PATIENCE_S if number == VICTIM else 0.01)
    note(path, f"ended {number} {os.getpid()}")
    return number * number


def note(path: str, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def lines(ledger: Path) -> list[list[str]]:
    text = ledger.read_text() if ledger.exists() else ""
    return [line.split() for line in text.splitlines()]


def runner_of_victim(ledger: Path) -> int:
    """The process that runs it; 0 while it has not begun."""
    begun = ["begun", str(VICTIM)]
    return next((int(pid) for *line, pid in lines(ledger) if line == begun), 0)


def test_tasks_survive_kills_and_none_is_run_twice(
    home: GrassHome, ledger: Path
) -> None:
    grass.enqueue(noted, str(ledger), 0).result(PATIENCE_S)
    jobs = grass.map(partial(noted, str(ledger)), range(1, TASKS + 1))

    def await_lines(count: int) -> None:
        until(lambda: len(lines(ledger)) >= count, f"{count} lines do not come")

    await_lines(10)
    home.kill_daemon()
    home.ok("start")
    kill(until(lambda: runner_of_victim(ledger), "the victim does not begin"))
    await_lines(50)
    home.kill_keeper()
    jobs.wait(PATIENCE_S)
    check(home, ledger, [job.id for job in jobs])


def check(home: GrassHome, ledger: Path, ids: list[int]) -> None:
    counts = Counter((what, int(number)) for what, number, _pid in lines(ledger))
    ended = Counter[str]()
    for number, id in enumerate(ids, 1):
        document = home.client.job(id)
        ended[document["state"]] += 1
        begun, done = counts["begun", number], counts["ended", number]
        assert begun <= 1, f"job {id} was run {begun} times"
        if document["state"] == "succeeded":
            assert (begun, done) == (1, 1)
            assert grass.jobs(id).result(PATIENCE_S) == number * number
        elif document["state"] == "failed":
            assert (number, document["signal"], done) == (VICTIM, 9, 0)
    assert ended["failed"] == 1
    assert ended["succeeded"] > TASKS // 2
    assert ended.total() == TASKS
