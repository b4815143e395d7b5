"""Files of a running home that are deleted: sockets and locks come back."""

import os
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from grass.client.connection import open_connection
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.processes import alive, await_end, await_stopped, kill

pytestmark = [pytest.mark.daemon, pytest.mark.sqlite]


def await_socket_of(home: GrassHome) -> None:
    """Return when a daemon can be reached again."""

    def reached() -> bool:
        found = open_connection(str(home.folder / "grass.sock"))
        if found is not None:
            found.close()
        return found is not None

    until(reached, "the socket did not come back")
    # Its lock comes back beside the socket; without it no test finds the daemon.
    until(home.daemon_pid, "the lock did not come back")


def test_a_daemon_puts_its_socket_back(home: GrassHome) -> None:
    daemon = home.daemon_pid()
    for _ in range(3):
        (home.folder / "grass.sock").unlink()
        await_socket_of(home)
    mode = (home.folder / "grass.sock").stat().st_mode
    assert mode & 0o777 == 0o600
    home.client.close()
    assert home.wait(home.enqueue("--", "true"))["state"] == "succeeded"
    assert home.daemon_pid() == daemon
    home.ok("stop")
    assert not (home.folder / "grass.sock").exists()


def test_a_connection_outlives_the_socket_that_it_was_made_with(
    home: GrassHome,
) -> None:
    before = home.client.overview()["daemon"]["pid"]
    (home.folder / "grass.sock").unlink()
    await_socket_of(home)
    assert home.client.overview()["daemon"]["pid"] == before


def test_without_lock_and_socket_there_is_still_one_daemon(home: GrassHome) -> None:
    daemon = home.daemon_pid()
    (home.folder / "daemon.lock").unlink()
    (home.folder / "grass.sock").unlink()
    assert f"(pid {daemon})" in home.ok("start")
    until(home.daemon_pid, "the lock did not come back", lambda pid: pid == daemon)
    home.client.close()
    assert home.wait(home.enqueue("--", "true"))["state"] == "succeeded"


def test_a_second_daemon_is_refused_however_many_files_are_gone(
    home: GrassHome,
) -> None:
    daemon = home.daemon_pid()
    assert daemon is not None
    os.kill(daemon, signal.SIGSTOP)
    try:
        await_stopped(daemon)
        for name in ("daemon.lock", "grass.sock", "start.lock"):
            (home.folder / name).unlink()
        refused = home.run("daemon")
    finally:
        os.kill(daemon, signal.SIGCONT)
    assert refused.returncode == 5
    assert "a daemon already serves" in refused.stderr
    await_socket_of(home)


def test_a_home_moved_while_its_daemon_runs_is_still_taken(
    home: GrassHome, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    daemon = home.daemon_pid()
    assert daemon is not None
    os.kill(daemon, signal.SIGSTOP)
    await_stopped(daemon)
    home.folder.rename(moved)
    try:
        refused = home.run("daemon", env={"GRASS_HOME": str(moved)})
    finally:
        moved.rename(home.folder)
        os.kill(daemon, signal.SIGCONT)
    assert refused.returncode == 5
    home.client.close()
    assert home.wait(home.enqueue("--", "true"))["state"] == "succeeded"
    assert home.daemon_pid() == daemon


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    """A folder that is to have a home."""
    folder = tmp_path / "outer"
    folder.mkdir()
    return folder


def home_in(tmp_path: Path, name: str, folder: Path) -> GrassHome:
    """Return a home in a folder, with a desk of its own."""
    (tmp_path / name).mkdir()
    return GrassHome(tmp_path / name, folder)


@pytest.mark.parametrize("is_outer", [False, True])
def test_a_daemon_whose_home_was_moved_does_not_show_the_jobs_of_the_next_home(
    tmp_path: Path, outer: Path, gate: Fifo, news: Fifo, is_outer: bool
) -> None:
    with ExitStack() as ends:
        first = home_in(tmp_path, "first", outer / "home")
        ends.callback(first.end)
        running = first.enqueue(f"echo $$ > {news}; read x < {gate}; exit 4")
        pid = first.await_start(running, news)
        daemon = first.daemon_pid()
        assert daemon is not None
        first.client.close()
        before, after = outer, tmp_path / "moved"
        if not is_outer:
            before, after = outer / "home", outer / "moved"
        before.rename(after)
        place = after / "home" if is_outer else after
        moved = home_in(tmp_path, "second", place)
        ends.callback(moved.end)
        # A home in the old place, and a command in the new one, at once.
        first.ok("enqueue", "--hold", "--name", "next", "--", "true")
        names = [job["name"] for job in moved.document()["jobs"]]
        assert names == ["echo"]
        await_end(daemon)
        log = moved.log()
        assert f"was moved to {place} beneath its daemon" in log
        assert f"GRASS_HOME={place} grass start" in log
        assert [job["name"] for job in first.document()["jobs"]] == ["next"]
        assert alive(pid)
        gate.tell()
        await_end(pid)
        moved.client.close()
        assert moved.wait(running)["exit_code"] == 4
        assert [job["name"] for job in first.document()["jobs"]] == ["next"]


def test_a_daemon_whose_home_is_deleted_ends_and_leaves_nothing(
    home: GrassHome,
) -> None:
    daemon = home.daemon_pid()
    assert daemon is not None
    shutil.rmtree(home.folder)
    await_end(daemon)
    assert not home.folder.exists()


def test_the_next_daemon_reaches_a_keeper_whose_socket_was_deleted(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 4")
    pid = home.await_start(id, news)
    keeper = home.keeper_pid()
    (home.folder / "keeper" / "keeper.sock").unlink()
    home.replace_daemon()
    gate.tell()
    await_end(pid)
    assert home.wait(id)["exit_code"] == 4
    assert home.keeper_pid() == keeper


def test_a_keeper_puts_its_socket_back_while_no_daemon_runs(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 4")
    home.await_start(id, news)
    socket = home.folder / "keeper" / "keeper.sock"
    home.kill_daemon()
    for _ in range(2):
        socket.unlink()
        until(socket.exists, "the socket did not come back")
    assert socket.stat().st_mode & 0o077 == 0
    home.ok("start")
    gate.tell()
    assert home.wait(id)["exit_code"] == 4


def test_a_job_whose_keeper_and_records_are_gone_is_found_and_not_run_twice(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    job = home.enqueue(
        "--retry-lost", "1", "--", f"echo $$ > {news}; read x < {gate}; exit 4"
    )
    pid = home.await_start(job, news)
    keeper = home.keeper_pid()
    assert keeper is not None
    os.kill(keeper, signal.SIGSTOP)
    shutil.rmtree(home.folder / "keeper")
    home.kill_daemon()
    kill(keeper)
    home.ok("start")
    until(lambda: home.client.job(job), "it is not running", lambda one: one["pid"])
    assert [one["number"] for one in home.client.job(job)["attempts"]] == [1]
    assert (home.state(job), alive(pid)) == ("running", True)
    gate.tell()
    await_end(pid)
    # Only then: its exit code is lost with its keeper, and it may run again.
    second = home.await_start(job, news)
    assert second != pid
    gate.tell()
    assert home.wait(job)["exit_code"] == 4
    assert len(home.client.job(job)["attempts"]) == 2


def test_a_job_that_is_found_again_can_be_cancelled(
    home: GrassHome, news: Fifo
) -> None:
    job = home.enqueue("--", f"echo $$ > {news}; exec sleep 600")
    pid = home.await_start(job, news)
    keeper = home.keeper_pid()
    assert keeper is not None
    os.kill(keeper, signal.SIGSTOP)
    shutil.rmtree(home.folder / "keeper")
    home.kill_daemon()
    kill(keeper)
    home.ok("start")
    until(lambda: home.client.job(job)["pid"], "it was not found", lambda at: at == pid)
    home.ok("cancel", "--yes", str(job))
    await_end(pid)
    assert home.wait(job)["state"] == "cancelled"


def test_a_job_of_which_nothing_is_found_is_lost(
    home: GrassHome, news: Fifo, gate: Fifo
) -> None:
    job = home.enqueue("--", f"echo $$ > {news}; read x < {gate}")
    pid = home.await_start(job, news)
    keeper = home.keeper_pid()
    assert keeper is not None
    os.kill(keeper, signal.SIGSTOP)
    shutil.rmtree(home.folder / "keeper")
    home.kill_daemon()
    kill(keeper)
    kill(pid)
    home.ok("start")
    assert home.wait(job)["state"] == "lost"


def test_a_keeper_puts_its_folder_back_and_exit_codes_arrive(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    job = home.enqueue(
        "--retry-lost", "1", "--", f"echo $$ > {news}; read x < {gate}; exit 4"
    )
    pid = home.await_start(job, news)
    keeper, folder = home.keeper_pid(), home.folder / "keeper"
    instance = (folder / "instance").read_text().split()[0]
    for _ in range(2):
        shutil.rmtree(folder)
        until((folder / "keeper.sock").exists, "the folder did not come back")
    assert (home.keeper_pid(), alive(pid)) == (keeper, True)
    assert (folder / "instance").read_text().split()[0] == instance
    home.replace_daemon()
    gate.tell()
    assert home.wait(job)["exit_code"] == 4
    assert len(home.client.job(job)["attempts"]) == 1
    assert home.keeper_pid() == keeper


def test_a_worker_id_that_is_lost_with_the_keepers_folder_is_recovered(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 7")
    home.await_start(id, news)
    home.ok("stop")
    home.client.close()
    own, folder = home.folder / "worker-id", home.folder / "keeper"
    was = own.read_text()
    shutil.rmtree(folder)
    until((folder / "keeper.sock").exists, "the folder did not come back")
    own.unlink()
    home.ok("start")
    assert own.read_text() == was
    gate.tell()
    assert home.wait(id)["exit_code"] == 7


def test_a_folder_that_is_deleted_while_the_daemon_dies_costs_no_second_attempt(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    job = home.enqueue(
        "--retry-lost", "1", "--", f"echo $$ > {news}; read x < {gate}; exit 4"
    )
    pid = home.await_start(job, news)
    shutil.rmtree(home.folder / "keeper")
    home.replace_daemon()
    until(lambda: home.client.job(job)["pid"], "it was not found", lambda at: at == pid)
    assert [one["number"] for one in home.client.job(job)["attempts"]] == [1]
    gate.tell()
    await_end(pid)


def test_a_keeper_that_nobody_can_reach_ends_its_jobs_and_itself_on_sigterm(
    home: GrassHome, news: Fifo
) -> None:
    job = home.enqueue(
        "--", f"trap 'exit 7' TERM; echo $$ > {news}; while :; do sleep 0.05; done"
    )
    pid = home.await_start(job, news)
    keeper, daemon = home.keeper_pid(), home.daemon_pid()
    assert keeper is not None
    assert daemon is not None
    os.kill(keeper, signal.SIGTERM)
    assert alive(keeper)
    shutil.rmtree(home.folder)
    await_end(daemon)
    assert alive(pid)
    os.kill(keeper, signal.SIGTERM)
    await_end(keeper)
    assert not alive(pid)
