"""A database that is gone: nobody begins anew without having been asked to."""

import shutil

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import await_end

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]


def files(home: GrassHome) -> list[str]:
    return sorted(one.name for one in home.folder.glob("grass.db*"))


def lose(home: GrassHome) -> None:
    """Kill the daemon and delete all of its database."""
    home.kill_daemon()
    for file in home.folder.glob("grass.db*"):
        file.unlink()


def test_a_deleted_database_is_told_and_not_made_anew(home: GrassHome) -> None:
    home.wait(home.enqueue("--", "true"))
    lose(home)
    for words in (("show",), ("start",), ("enqueue", "true")):
        refused = home.run(*words)
        assert refused.returncode == 1
        assert "grass.db is gone" in refused.stderr
        assert "`grass start --new-database`" in refused.stderr
        assert refused.stderr.count("\n") == 1
    assert files(home) == []


def test_a_database_cut_to_nothing_is_told_and_left_as_it_is(home: GrassHome) -> None:
    home.wait(home.enqueue("--", "true"))
    home.kill_daemon()
    (home.folder / "grass.db").write_bytes(b"")
    log = (home.folder / "grass.db-wal").read_bytes()
    refused = home.run("show")
    assert refused.returncode == 1
    assert "grass.db is empty" in refused.stderr
    assert (home.folder / "grass.db-wal").read_bytes() == log


def test_its_log_alone_tells_that_there_was_a_database(home: GrassHome) -> None:
    """As in a home that an earlier version has made."""
    home.enqueue("--hold", "--", "true")
    home.kill_daemon()
    (home.folder / "cluster").unlink()
    (home.folder / "grass.db").unlink()
    assert "grass.db is gone" in home.run("start").stderr


def test_a_backup_that_is_put_back_is_used(home: GrassHome) -> None:
    home.wait(home.enqueue("--", "true"))
    home.ok("stop")
    kept = shutil.copy(home.folder / "grass.db", home.desk / "kept")
    (home.folder / "grass.db").unlink()
    assert home.run("start").returncode == 1
    shutil.copy(kept, home.folder / "grass.db")
    home.ok("start")
    assert home.state(1) == "succeeded"


def test_one_may_begin_anew_when_asked_to(home: GrassHome) -> None:
    home.wait(home.enqueue("--", "true"))
    assert home.run("start", "--new-database").returncode == 5
    lose(home)
    home.ok("start", "--new-database")
    assert home.document()["jobs"] == []
    assert home.wait(home.enqueue("--", "true"))["id"] == 1
    home.ok("stop")
    refused = home.run("start", "--new-database")
    assert (refused.returncode, "not lost" in refused.stderr) == (5, True)


def test_a_start_that_got_no_further_than_an_empty_file_is_no_loss(
    cold: GrassHome,
) -> None:
    cold.folder.mkdir(mode=0o700)
    (cold.folder / "grass.db").touch()
    cold.ok("start")


@pytest.mark.parametrize("names", ["grass.db*", "grass.db", "grass.db-wal"])
def test_a_database_deleted_beneath_its_daemon_is_written_anew(
    home: GrassHome, gate: Fifo, news: Fifo, names: str
) -> None:
    held = home.enqueue("--hold", "--", "true")
    running = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 4")
    home.await_start(running, news)
    daemon = home.daemon_pid()
    assert daemon is not None
    for file in home.folder.glob(names):
        file.unlink()
    await_end(daemon)
    assert "was deleted" in home.log().splitlines()[-1]
    home.client.close()
    gate.tell()
    assert home.wait(running)["exit_code"] == 4
    assert home.state(held) == "held"


def test_a_log_that_was_deleted_after_a_crash_is_told(home: GrassHome) -> None:
    held = home.enqueue("--hold", "--", "true")
    home.kill_daemon()
    log = home.folder / "grass.db-wal"
    kept = shutil.copy(log, home.desk / "kept")
    log.unlink()
    for words in (("show",), ("start",), ("enqueue", "true")):
        refused = home.run(*words)
        assert refused.returncode == 1
        assert "grass.db-wal is gone" in refused.stderr
    for words in (("backup", "kept"), ("store", "check")):
        refused = home.run(*words)
        assert refused.returncode != 0
        assert "grass.db-wal is gone" in refused.stderr
        assert refused.stderr.count("\n") == 1
    doctor = home.run("doctor")
    assert doctor.returncode == 1
    assert "grass.db-wal is gone" in doctor.stdout
    shutil.copy(kept, log)
    home.ok("start")
    assert home.state(held) == "held"


def test_a_database_of_another_home_is_refused(home: GrassHome) -> None:
    home.enqueue("--hold", "--", "true")
    home.ok("stop")
    cluster = (home.folder / "cluster").read_text()
    (home.folder / "cluster").write_text("0123456789abcdef\n")
    refused = home.run("start")
    assert refused.returncode == 1
    assert f"has the queue of cluster {cluster.strip()}" in refused.stderr
    assert refused.stderr.count("\n") == 1
    (home.folder / "cluster").unlink()
    home.ok("start")
    assert home.state(1) == "held"


@pytest.mark.parametrize("name", ["grass.db", "grass.db-wal"])
def test_a_file_put_in_the_place_of_the_database_ends_its_daemon(
    home: GrassHome, name: str
) -> None:
    held = home.enqueue("--hold", "--", "true")
    home.restart()
    daemon = home.daemon_pid()
    assert daemon is not None
    other = home.folder / "other"
    shutil.copy(home.folder / name, other)
    other.rename(home.folder / name)
    await_end(daemon)
    assert f"{name} was deleted or replaced" in home.log().splitlines()[-1]
    home.client.close()
    assert home.state(held) == "held"
