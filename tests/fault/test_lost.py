"""Attempts whose end nobody saw."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import grass
from grass.tasks.errors import TaskLost
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S, until
from tests.support.processes import await_end, kill

pytestmark = pytest.mark.daemon


def lose(home: GrassHome, *pids: int) -> None:
    """End everything as a power cut would."""
    home.kill_daemon()
    home.kill_keeper()
    for pid in pids:
        kill(pid)
    home.pretend_other_boot()


def test_what_a_lost_job_wrote_can_be_read(home: GrassHome, news: Fifo) -> None:
    id = home.enqueue(f"echo last words; echo $$ > {news}; exec sleep 1000")
    lose(home, home.await_start(id, news))
    job = home.wait(id)
    assert (job["state"], job["exit_code"]) == ("lost", None)
    assert home.ok("logs", str(id)) == "last words\n"
    assert home.ok("logs", "-f", str(id)) == "last words\n"
    assert home.client.explain(id)["last_lines"] == ["last words"]
    assert home.run("wait", str(id)).returncode == 125


def test_a_lost_job_runs_again_only_as_often_as_allowed(
    home: GrassHome, news: Fifo
) -> None:
    line = f"echo attempt {{attempt}}; echo $$ > {news}; exec sleep 1000"
    once = home.enqueue("--retries", "5", line)
    pid = home.await_start(once, news)
    again = home.enqueue("--retry-lost", "1", line)
    other = home.await_start(again, news)
    lose(home, pid, other)
    assert home.wait(once)["state"] == "lost"
    second = home.await_start(again, news)
    lose(home, second)
    job = home.wait(again)
    assert job["state"] == "lost"
    assert [one["state"] for one in job["attempts"]] == ["lost", "lost"]
    assert [one["exit_code"] for one in job["attempts"]] == [None, None]
    printed = [home.ok("logs", "--attempt", number, str(again)) for number in "12"]
    assert printed == ["attempt 1\n", "attempt 2\n"]


def test_a_lost_task_is_named_and_run_again_where_that_is_allowed(
    home: GrassHome, news: Fifo, gate: Fifo, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(news: str, gate: str) -> str:
        Path(news).write_text(f"{os.getpid()}\n")
        with Path(gate).open() as file:
            return file.readline()

    monkeypatch.setenv("GRASS_HOME", str(home.folder))
    job = grass.enqueue(tell, str(news), str(gate))
    lose(home, home.await_start(job.id, news))
    with pytest.raises(TaskLost, match=rf"`tell`, job {job.id}, is lost"):
        job.result(PATIENCE_S)
    again = grass.enqueue(tell, str(news), str(gate), retry_lost=1)
    lose(home, home.await_start(again.id, news))
    home.ok("start")
    home.await_start(again.id, news)
    gate.tell("done")
    assert again.result(PATIENCE_S) == "done\n"
    assert len(again.refresh().document["attempts"]) == 2


def test_an_exit_that_the_keeper_knew_outlives_the_machine(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    line = f"echo $$ > {news}; read x < {gate}; exit 3"
    id = home.enqueue("--retry-lost", "5", line)
    pid = home.await_start(id, news)
    home.kill_daemon()
    gate.tell()
    await_end(pid)
    records = home.folder / "keeper" / "records"
    until(records.read_text, "its end is not on record", lambda it: '"exited"' in it)
    home.kill_keeper()
    home.pretend_other_boot()
    job = home.wait(id)
    assert (job["state"], job["exit_code"]) == ("failed", 3)
    assert len(job["attempts"]) == 1


def empty_instance(folder: Path) -> None:
    (folder / "keeper" / "instance").write_bytes(b"")


def restore_from_backup(folder: Path) -> None:
    backup = folder.with_name("backup")
    shutil.copytree(folder, backup, ignore=shutil.ignore_patterns("*.sock"))
    shutil.rmtree(folder)
    backup.rename(folder)


def lose_keeper_folder(folder: Path) -> None:
    shutil.rmtree(folder / "keeper")


@pytest.mark.parametrize(
    "damage", [empty_instance, restore_from_backup, lose_keeper_folder]
)
def test_whatever_a_reboot_does_to_the_home_its_jobs_are_reconciled(
    home: GrassHome, news: Fifo, damage: Callable[[Path], None]
) -> None:
    id = home.enqueue(f"echo $$ > {news}; exec sleep 1000")
    lose(home, home.await_start(id, news))
    damage(home.folder)
    assert home.wait(id)["state"] == "lost"


def test_a_restored_home_finds_what_still_runs(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = home.enqueue(f"echo $$ > {news}; read x < {gate}")
    home.await_start(id, news)
    home.kill_daemon()
    home.kill_keeper()
    restore_from_backup(home.folder)
    home.ok("start")
    assert home.state(id) == "running"
    assert not home.client.job(id)["unreachable"]
    gate.tell()
    assert home.wait(id)["state"] in ("succeeded", "lost")
