"""A new version takes over from the one before, with jobs in flight."""

import threading
from pathlib import Path

import pytest

import grass
from tests.fault.earlier import VERSION, Earlier
from tests.fault.witness import judge, line
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import await_end

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]

JOBS = 60


@pytest.fixture
def earlier(cold: GrassHome, tmp_path: Path) -> Earlier:
    """A daemon and a keeper of the version before."""
    version = Earlier(cold, tmp_path / "earlier")
    version.ok("start")
    assert cold.client.overview()["daemon"]["version"] == VERSION
    assert version.is_program_of(keeper_of(cold))
    return version


def keeper_of(home: GrassHome) -> int:
    """Return the pid of the keeper there is."""
    pid = home.keeper_pid()
    assert pid is not None
    return pid


def test_jobs_do_not_notice_an_upgrade(
    cold: GrassHome, earlier: Earlier, gate: Fifo, news: Fifo
) -> None:
    id = cold.enqueue(f"echo one; echo $$ > {news}; read x < {gate}; echo two; exit 5")
    pid, keeper = int(news.hear()), keeper_of(cold)
    cold.restart()
    shown = cold.client.overview()
    assert shown["daemon"]["version"] == grass.__version__
    assert keeper_of(cold) == keeper
    job = cold.client.job(id)
    assert (job["state"], job["pid"]) == ("running", pid)
    after = cold.enqueue("--", "echo", "under the old keeper")
    assert cold.wait(after)["state"] == "succeeded"
    gate.tell()
    ended = cold.wait(id)
    assert (ended["state"], ended["exit_code"]) == ("failed", 5)
    assert cold.logs(id) == "one\ntwo\n"
    assert cold.logs(after) == "under the old keeper\n"


def test_an_exit_that_only_the_old_keeper_saw_arrives(
    cold: GrassHome, earlier: Earlier, gate: Fifo, news: Fifo
) -> None:
    id = cold.enqueue(f"echo $$ > {news}; read x < {gate}; exit 6")
    pid = int(news.hear())
    cold.kill_daemon()
    gate.tell()
    await_end(pid)
    cold.ok("start")
    assert cold.wait(id)["exit_code"] == 6


def test_a_new_keeper_comes_when_the_old_one_has_left(
    cold: GrassHome, earlier: Earlier, gate: Fifo, news: Fifo
) -> None:
    id = cold.enqueue(f"echo $$ > {news}; read x < {gate}")
    news.hear()
    keeper = keeper_of(cold)
    cold.restart()
    cold.restart()
    assert keeper_of(cold) == keeper, "it has a job to look after"
    gate.tell()
    cold.wait(id)
    cold.ok("stop")
    await_end(keeper)
    cold.ok("start")
    assert not earlier.is_program_of(keeper_of(cold))
    assert cold.wait(cold.enqueue("--", "true"))["state"] == "succeeded"


def test_a_new_keeper_takes_over_what_a_killed_older_one_had(
    cold: GrassHome, earlier: Earlier, gate: Fifo, news: Fifo
) -> None:
    exited = cold.enqueue("--", "false")
    cold.wait(exited)
    id = cold.enqueue(f"echo $$ > {news}; read x < {gate}; echo done")
    pid = int(news.hear())
    cold.restart()
    cold.kill_keeper()
    after = cold.enqueue("--", "true")
    assert cold.wait(after)["state"] == "succeeded"
    assert not earlier.is_program_of(keeper_of(cold))
    job = cold.client.job(id)
    assert (job["state"], job["pid"]) == ("running", pid)
    gate.tell()
    cold.wait(id)
    assert cold.logs(id) == "done\n"


def test_an_upgrade_and_a_downgrade_under_load_lose_nothing(
    cold: GrassHome, earlier: Earlier
) -> None:
    ledger = cold.desk / "ledger"
    numbers: dict[int, int] = {}

    def enqueue() -> None:
        for number in range(1, JOBS + 1):
            command = line(ledger, number, 0.05 * (number % 8))
            job = cold.client.enqueue(
                command, name=str(number), cwd=str(cold.desk), require="{cpu:0.1}"
            )
            numbers[job] = number

    caller = threading.Thread(target=enqueue)
    caller.start()
    cold.ok("restart")
    earlier.ok("restart")
    cold.ok("restart")
    caller.join()
    cold.wait(*numbers)
    verdict = judge(cold, ledger, numbers)
    assert verdict.fine
    assert verdict.called_lost == []
