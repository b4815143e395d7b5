"""A database that is damaged beneath its daemon: one line each, and a way out.

What SQLite has in memory may hide the damage for a while. Once it was seen, nothing
more is acknowledged; jobs run on.
"""

import os
import sqlite3

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import alive, await_end

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]

PAGE = 4096


def damage(home: GrassHome) -> None:
    """Overwrite all pages but the first, which is what a daemon reads at its start."""
    # What was in the log is in the file afterwards.
    home.restart()
    path = home.folder / "grass.db"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(PAGE)
        file.write(os.urandom(size - PAGE))


def one_line(home: GrassHome, *words: str) -> str:
    """Run a command that is refused for the damage, in one line."""
    refused = home.run(*words)
    assert refused.returncode == 1, refused
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert "is damaged" in refused.stderr
    assert "`grass restore FILE`" in refused.stderr
    return refused.stderr


def test_nothing_is_acknowledged_and_a_backup_is_the_way_out(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    home.wait(home.enqueue("--", "true"))
    running = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 4")
    pid = home.await_start(running, news)
    home.ok("backup", "kept")
    damage(home)
    while home.run("show", "--all", "--limit", "900").returncode == 0:
        home.run("explain", "1")
    for words in (("enqueue", "--", "true"), ("enqueue", "--", "true"), ("show",)):
        one_line(home, *words)
    one_line(home, "store", "check")
    assert alive(pid)
    home.ok("stop")
    home.client.close()
    home.ok("restore", "kept")
    home.ok("start")
    gate.tell()
    await_end(pid)
    assert home.wait(running)["exit_code"] == 4


def test_a_daemon_on_a_damaged_database_can_be_stopped(home: GrassHome) -> None:
    home.wait(*home.enqueue_array("--from", "-", "--", "echo {}", input="1\n" * 500))
    damage(home)
    daemon = home.daemon_pid()
    assert daemon is not None
    stopped = home.run("stop")
    assert stopped.returncode == 0, stopped.stderr
    await_end(daemon)


def test_damage_that_is_not_noticed_yet_is_found_by_a_check(home: GrassHome) -> None:
    home.wait(*home.enqueue_array("--from", "-", "--", "echo {}", input="1\n" * 500))
    home.ok("stop")
    path = home.folder / "grass.db"
    with sqlite3.connect(path) as db:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'attempts'"
        (page,) = db.execute(query).fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * PAGE)
    one_line(home, "store", "check")
