"""A daemon whose store is in PostgreSQL, and what becomes of it without the server."""

import os
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from subprocess import TimeoutExpired
from tempfile import gettempdir
from threading import Thread
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import PATIENCE_S, until
from tests.support.postgres import everything
from tests.support.processes import alive

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.daemon
SECRET = "s3cret-word"
WRONG = "not-that-word"
DISK_BYTES = 32 << 20
LONGEST_STOP_S = 60.0
END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'grass'"
)


@pytest.fixture
def server(postgres: "PostgresServer") -> Iterator["PostgresServer"]:
    """A server that a test may stop."""
    from tests.support.postgres import PostgresServer

    own = PostgresServer(Path(gettempdir()) / f"grass-own-{token_hex(4)}")
    own.create()
    own.start()
    own.execute("CREATE DATABASE grass")
    yield own
    with suppress(AssertionError):
        own.stop()
    own.remove()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own, for a database."""
    folder = Path(gettempdir()) / f"grass-disk-{token_hex(4)}"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "grass-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)
    folder.rmdir()


def owner_of(path: Path) -> tuple[int, int]:
    known = path.stat()
    return known.st_uid, known.st_gid


@pytest.fixture
def home(server: "PostgresServer", cold: GrassHome) -> GrassHome:
    cold.ok("start", "--store", server.url("grass"))
    return cold


@contextmanager
def hung(server: "PostgresServer") -> Iterator[None]:
    """Stop every process of the server for a while."""
    sessions = [row[0] for row in server.execute("SELECT pid FROM pg_stat_activity")]
    pids = {server.pid, *sessions} - {None}
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def tries(home: GrassHome) -> bool:
    """Tell whether the daemon has the database again."""
    return home.run("enqueue", "--", "true").returncode == 0


def test_a_database_that_is_restarted_costs_no_job(
    home: GrassHome, server: "PostgresServer", gate: Fifo
) -> None:
    home.ok("enqueue", "--", "sh", "-c", f"read x < {gate}; exit 3")
    home.await_event("started", 1)
    server.stop()
    refused = home.run("enqueue", "--", "true")
    assert refused.returncode == 3
    assert "does not answer" in refused.stderr
    assert "\n" not in refused.stderr.strip()
    assert home.run("show").returncode == 3
    gate.tell()
    server.start()
    until(lambda: tries(home), "the daemon does not find the database again")
    assert home.run("wait", "1").returncode != 0
    job = next(one for one in home.document()["jobs"] if one["id"] == 1)
    assert (job["state"], job["exit_code"]) == ("failed", 3)
    ids = sorted(one["id"] for one in home.document()["jobs"])
    assert ids == list(range(1, len(ids) + 1))
    home.ok("stop")
    home.ok("start")
    assert sorted(one["id"] for one in home.document()["jobs"]) == ids


def test_an_enqueue_whose_commit_is_broken_off_adds_one_job(
    home: GrassHome, server: "PostgresServer"
) -> None:
    writing = "FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with psycopg.connect(server.url("grass")) as other:
        other.execute("LOCK TABLE jobs IN EXCLUSIVE MODE")
        adding = home.popen("enqueue", "--", "true")
        found = lambda: server.execute(f"SELECT pid {writing}")  # noqa: E731
        until(found, "nothing is being committed")
        server.execute(f"SELECT pg_terminate_backend(pid) {writing}")
    assert adding.communicate()[0] == "1\n"
    assert [one["id"] for one in home.document()["jobs"]] == [1]


def test_a_server_that_hangs_delays_and_loses_nothing(
    home: GrassHome, server: "PostgresServer"
) -> None:
    home.ok("enqueue", "--", "true")
    with hung(server):
        waiting = home.popen("enqueue", "--", "true")
        with pytest.raises(TimeoutExpired):
            waiting.wait(0.5)
    assert waiting.wait(30) == 0
    home.ok("wait", "2")


def test_a_daemon_whose_database_hangs_stops_for_good(
    home: GrassHome, server: "PostgresServer"
) -> None:
    pid = home.daemon_pid()
    assert pid is not None
    with hung(server):
        adding = home.popen("enqueue", "--", "true")
        began = time.monotonic()
        stopped = home.run("stop")
        assert stopped.returncode == 0, stopped.stderr
        # Not in a moment either: a thread of it might wait for the database.
        assert not alive(pid)
        assert time.monotonic() - began < LONGEST_STOP_S
        adding.communicate()
    home.ok("start")


def test_a_database_that_becomes_read_only_says_so_and_loses_nothing(
    home: GrassHome, server: "PostgresServer"
) -> None:
    home.ok("enqueue", "--", "true")
    home.ok("wait", "1")
    set_read_only = "ALTER DATABASE grass SET default_transaction_read_only TO"
    server.execute(f"{set_read_only} on")
    server.execute(END_SESSIONS)
    said: list[str] = []

    def is_told() -> bool:
        ran = home.run("enqueue", "--", "true")
        said.append(ran.stderr.strip())
        assert ran.returncode != 0
        return "read-only" in ran.stderr

    until(is_told, "nobody says that the database is read-only")

    assert "\n" not in said[-1]
    server.execute(f"{set_read_only} off")
    server.execute(END_SESSIONS)
    until(lambda: tries(home), "the daemon does not write again")
    assert {one["id"] for one in home.document()["jobs"]} >= {1, 2}


def test_a_full_disk_of_the_server_is_told_and_loses_nothing(
    postgres: "PostgresServer", server: "PostgresServer", cold: GrassHome, disk: Path
) -> None:
    shutil.chown(disk, *owner_of(server.folder))
    server.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
    server.execute("CREATE DATABASE tight TABLESPACE small")
    cold.ok("start", "--store", server.url("tight"))
    cold.ok("enqueue", "--", "true")
    cold.ok("wait", "1")
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 65536)
    many = "true\n" * 5000
    refused = cold.run("enqueue", "--from", "-", "--", "{}", input=many)
    assert refused.returncode != 0
    assert "the disk of the database" in refused.stderr
    assert "is full" in refused.stderr
    filler.unlink()
    until(lambda: tries(cold), "the daemon does not write again")
    jobs = cold.document()["jobs"]
    assert {one["id"] for one in jobs} == set(range(1, len(jobs) + 1))
    assert len(jobs) < 5000


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"postgresql://me:{SECRET}@h/grass", "has a password in it"),
        (f"postgresql://me:a?{SECRET}@h/grass", "has a password in it"),
        (f"postgresql://me:a/{SECRET}@h/grass", "has a password in it"),
        ("postgresql://me@127.0.0.1:1/grass", "cannot be opened"),
        ("postgresql://me@127.0.0.1:x/grass", "invalid integer value"),
        (f"mysql://me:{SECRET}@h/d", "is not a database"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_line(
    cold: GrassHome, url: str, said: str
) -> None:
    for command in ("start", "daemon"):
        ran = cold.run(command, "--store", url)
        assert ran.returncode == 3
        assert said in ran.stderr
        assert SECRET not in ran.stderr + ran.stdout
        assert "\n" not in ran.stderr.strip()


def test_a_password_comes_from_the_usual_file_and_a_wrong_one_is_one_line(
    cold: GrassHome, server: "PostgresServer", tmp_path: Path
) -> None:
    server.execute(f"CREATE ROLE locked LOGIN PASSWORD '{SECRET}'")
    server.execute("GRANT ALL ON DATABASE grass TO locked")
    server.execute("GRANT ALL ON SCHEMA public TO locked", "grass")
    rules = server.folder / "data" / "pg_hba.conf"
    rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
    server.execute("SELECT pg_reload_conf()")
    url = server.url("grass").replace("grass@", "locked@")
    passwords = tmp_path / "passwords"
    passwords.touch(0o600)
    cold.environment["PGPASSFILE"] = str(passwords)
    for word, said in (
        ("", "no password supplied"),
        (WRONG, "password authentication"),
    ):
        passwords.write_text(f"*:*:*:locked:{word}\n" if word else "")
        for command in ("start", "daemon"):
            ran = cold.run(command, "--store", url)
            assert ran.returncode == 3
            assert said in ran.stderr
            assert "PGPASSFILE" in ran.stderr
            assert WRONG not in ran.stderr + ran.stdout
            assert "\n" not in ran.stderr.strip()
    passwords.write_text(f"*:*:*:locked:{SECRET}\n")
    passwords.chmod(0o644)
    assert f"`chmod 600 {passwords}`" in cold.run("start", "--store", url).stderr
    passwords.chmod(0o600)
    cold.ok("start", "--store", url)
    cold.ok("enqueue", "--", "true")
    cold.ok("wait", "1")
    log = (cold.folder / "daemon.log").read_text()
    assert SECRET not in log + cold.ok("doctor", "--json")


def test_a_server_that_is_too_old_is_one_line(cold: GrassHome) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as old:
        Thread(target=answer_as_old, args=(old,), daemon=True).start()
        port = old.getsockname()[1]
        url = f"postgresql://me@127.0.0.1:{port}/grass?sslmode=disable"
        ran = cold.run("start", "--store", url)
    assert ran.returncode == 3
    assert "is PostgreSQL 9; grass needs 13 or later" in ran.stderr
    assert "\n" not in ran.stderr.strip()


def answer_as_old(listening: socket.socket) -> None:
    """Let everybody in as PostgreSQL 9.6 does, which there is no package of."""
    while True:
        try:
            session, _ = listening.accept()
        except OSError:
            return
        with session:
            session.recv(4096)
            said = b"server_version\0" + b"9.6.24\0"
            status = b"S" + struct.pack("!i", 4 + len(said)) + said
            session.sendall(b"R\0\0\0\x08\0\0\0\0" + status + b"Z\0\0\0\x05I")
            while session.recv(4096):
                pass


def test_the_database_holds_neither_environments_nor_what_lets_anybody_in(
    cold: GrassHome, database: str
) -> None:
    cold.ok("start", "--bind", "127.0.0.1:0", "--store", database)
    cold.ok("enqueue", "--", "sh -c 'echo $PLANTED'", env={"PLANTED": SECRET})
    cold.ok("enqueue", "--hold", "--", "env", env={"PLANTED": SECRET})
    assert cold.run("wait", "1").returncode == 0
    assert cold.logs(1) == f"{SECRET}\n"
    line = cold.ok("token", "new", "--role", "broker").strip()
    until((cold.folder / "own-cluster.json").exists, "the machine has no token")
    own = (cold.folder / "own-cluster.json").read_text()
    [(name, token)] = re.findall(r'"token": ?"([^."]+)\.([^"]+)"', own)
    key = (cold.folder / "broker.key").read_text().splitlines()[1]
    found = everything(database)
    for secret in (SECRET, line.rpartition("/")[2], token, key):
        assert len(secret) >= 10
        assert secret not in found
    # Its own worker needs no token: it goes on without it.
    cold.ok("token", "revoke", name)
    cold.ok("enqueue", "--", "true")
    assert cold.run("wait", "3").returncode == 0
    assert stat.S_IMODE((cold.folder / "broker.key").stat().st_mode) == 0o600
    cold.ok("stop")
    (cold.folder / "broker.key").rename(cold.folder / "kept")
    refused = cold.run("start", "--store", database)
    assert refused.returncode == 3
    assert "broker.key" in refused.stderr
    assert "\n" not in refused.stderr.strip()
    cold.ok("store", "forget-environments", database)
    cold.ok("start", "--store", database)
    cold.ok("release", "2")
    assert cold.run("wait", "2").returncode == 0
    assert SECRET not in cold.logs(2)


def test_a_home_with_another_queue_is_refused(cold: GrassHome, database: str) -> None:
    cold.ok("start", "--store=sqlite")
    cold.ok("stop")
    refused = cold.run("start", "--store", database)
    assert refused.returncode == 1
    assert "grass store move sqlite" in refused.stderr


@pytest.mark.sqlite
def test_an_empty_database_stays_so_when_a_home_with_a_queue_is_refused(
    cold: GrassHome, server: "PostgresServer"
) -> None:
    url = server.url("grass")
    cold.ok("start")
    refused = [cold.run("restart", "--store", url)]
    cold.ok("stop")
    refused.append(cold.run("start", "--store", url))
    assert [ran.returncode for ran in refused] == [5, 1]
    assert all("the database is empty" in ran.stderr for ran in refused)
    for command in ("check", "forget-environments"):
        ran = cold.run("store", command, url)
        assert ran.returncode == 4
        assert "has no queue" in ran.stderr
    with psycopg.connect(url) as db:
        assert db.execute("SELECT to_regclass('meta')").fetchone() == (None,)
    cold.ok("start", "--store=sqlite")


def test_a_store_that_failed_is_tried_again_in_a_home_without_a_queue(
    cold: GrassHome, server: "PostgresServer"
) -> None:
    server.stop()
    options = ("--store", server.url("grass"), "--label", "a100")
    assert cold.run("start", *options).returncode == 3
    # What else was asked for has never worked, and is not kept.
    assert (cold.folder / "daemon-options.json").read_text() == (
        f'["--store={server.url("grass")}"]'
    )
    later = cold.run("enqueue", "--", "true")
    assert later.returncode == 3
    assert "cannot be opened" in later.stderr
    server.start()
    cold.ok("enqueue", "--", "true")
    assert cold.ok("store", "check").startswith(server.url("grass"))


def test_a_daemon_that_starts_without_its_database_waits_for_it(
    home: GrassHome, server: "PostgresServer", gate: Fifo
) -> None:
    home.ok("enqueue", "--", "sh", "-c", f"read x < {gate}; exit 3")
    home.await_event("started", 1)
    home.ok("stop")
    server.stop()
    started = home.run("start")
    pid = home.daemon_pid()
    assert started.returncode == 3
    assert f"the daemon (pid {pid}) waits for it, and goes on" in started.stderr
    for words in (["enqueue", "--", "true"], ["show"]):
        refused = home.run(*words)
        assert refused.returncode == 3
        assert "cannot be opened" in refused.stderr
        assert "\n" not in refused.stderr.strip()
    assert home.run("stop", "--jobs").returncode == 3
    server.start()
    until(lambda: tries(home), "the daemon finds the database")
    assert home.daemon_pid() == pid
    gate.tell()
    assert home.run("wait", "1").returncode == 3


def test_a_wrong_password_after_the_wait_for_the_database_is_one_line(
    cold: GrassHome, server: "PostgresServer", tmp_path: Path
) -> None:
    server.execute(f"CREATE ROLE locked LOGIN PASSWORD '{SECRET}'")
    server.execute("GRANT ALL ON DATABASE grass TO locked")
    server.execute("GRANT ALL ON SCHEMA public TO locked", "grass")
    rules = server.folder / "data" / "pg_hba.conf"
    rules.write_text(f"local all locked scram-sha-256\n{rules.read_text()}")
    server.execute("SELECT pg_reload_conf()")
    url = server.url("grass").replace("grass@", "locked@")
    passwords = tmp_path / "passwords"
    passwords.touch(0o600)
    cold.environment["PGPASSFILE"] = str(passwords)
    passwords.write_text(f"*:*:*:locked:{SECRET}\n")
    cold.ok("start", "--store", url)
    cold.ok("stop")
    cold.client.close()
    server.stop()
    passwords.write_text(f"*:*:*:locked:{WRONG}\n")
    daemon = cold.popen("daemon", "--store", url)
    until((cold.folder / "grass.sock").exists, "the daemon waits")
    server.start()
    _, said = daemon.communicate(timeout=PATIENCE_S)
    assert daemon.returncode == 3
    away, failed = said.splitlines()
    assert "store.away" in away
    assert failed.startswith(f"grass: the database {url} cannot be opened: ")
    assert "password authentication" in failed
    assert "PGPASSFILE" in failed
    refused = cold.run("show", env={"GRASS_AUTOSTART": "0"})
    assert refused.returncode == 3
    assert "no daemon is running" in refused.stderr


def test_a_daemon_that_waits_for_its_database_can_be_stopped(
    home: GrassHome, server: "PostgresServer"
) -> None:
    home.ok("stop")
    server.stop()
    assert home.run("start").returncode == 3
    assert home.ok("stop") == "grass is stopped\n"
    assert home.daemon_pid() is None


def test_a_restart_without_the_database_leaves_the_daemon_as_it_is(
    home: GrassHome, server: "PostgresServer"
) -> None:
    pid = home.daemon_pid()
    server.stop()
    refused = home.run("restart")
    assert refused.returncode == 3
    assert "the daemon runs on as before" in refused.stderr
    assert home.daemon_pid() == pid
    server.start()


def test_a_second_broker_is_refused(
    cold: GrassHome, database: str, tmp_path: Path
) -> None:
    cold.ok("start", "--store", database)
    (tmp_path / "other").mkdir()
    other = GrassHome(tmp_path / "other")
    try:
        refused = other.run("start", "--store", database)
    finally:
        other.end()
    assert "another broker uses the database" in refused.stderr
