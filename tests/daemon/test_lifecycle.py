"""A daemon's life: found or started, one for each home, stopped, restarted, idle."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from grass.client.daemon_launch import why_it_ended
from grass.config import Home
from grass.daemon import home_lock
from grass.errors import Refused
from grass.keeper.mounts import network_mount
from tests.support.fifo import Fifo
from tests.support.homes import GRASS, GrassHome
from tests.support.patience import until
from tests.support.processes import alive, await_end, kill, ticks, until_ready

pytestmark = pytest.mark.daemon

IDLE_S = 1.5


def test_twenty_callers_at_once_get_one_daemon(cold: GrassHome) -> None:
    callers = [cold.popen("enqueue", "--", "true") for _ in range(20)]
    said = [caller.communicate(timeout=60) for caller in callers]
    assert [caller.returncode for caller in callers] == [0] * 20, said
    assert sorted(int(out) for out, _ in said) == list(range(1, 21))
    assert [errors for _, errors in said] == [""] * 20
    assert (cold.folder / "daemon.log").read_text().count("daemon.ready") == 1
    cold.wait(*range(1, 21))


def test_stop_is_remembered_until_start(home: GrassHome) -> None:
    assert "stopped" in home.ok("stop")
    for words in (("enqueue", "--", "true"), ("show",), ("cancel", "1")):
        refused = home.run(*words)
        assert refused.returncode == 3
        assert "grass was stopped" in refused.stderr
        assert "grass start" in refused.stderr
    assert home.run("wait", "1").returncode == 124
    assert home.daemon_pid() is None
    home.ok("start")
    assert home.enqueue("--", "true") == 1
    home.wait(1)


def test_stop_before_anything_ran_is_remembered_too(cold: GrassHome) -> None:
    assert "no daemon was running" in cold.ok("stop")
    assert cold.run("enqueue", "--", "true").returncode == 3


def test_autostart_can_be_turned_off(cold: GrassHome) -> None:
    refused = cold.run("enqueue", "--", "true", env={"GRASS_AUTOSTART": "0"})
    assert refused.returncode == 3
    assert refused.stderr.count("\n") == 1
    assert cold.daemon_pid() is None


def test_start_twice_is_fine(shared: GrassHome) -> None:
    pid = shared.daemon_pid()
    said = shared.ok("start")
    assert "already" in said
    assert f"pid {pid}" in said
    assert shared.daemon_pid() == pid


def test_a_second_daemon_refuses_and_names_the_first(shared: GrassHome) -> None:
    refused = shared.run("daemon")
    assert refused.returncode == 5
    assert f"a daemon with pid {shared.daemon_pid()} already serves" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert shared.wait(shared.enqueue("--", "true"))["state"] == "succeeded"


def test_a_stale_socket_and_pid_file_do_no_harm(home: GrassHome) -> None:
    home.kill_daemon()
    assert (home.folder / "grass.sock").is_socket()
    (home.folder / "daemon.lock").write_text(f"{os.getpid()}\n")
    assert home.enqueue("--", "true") == 1
    home.wait(1)
    assert home.daemon_pid() != os.getpid()
    assert home.ok("stop") == "grass is stopped\n"


@pytest.mark.sqlite
def test_what_lies_in_the_sockets_place_does_no_harm(cold: GrassHome) -> None:
    cold.folder.mkdir(mode=0o700)
    (cold.folder / "grass.sock").write_text("not a socket")
    assert cold.enqueue("--", "true") == 1
    cold.wait(1)


def test_stop_leaves_jobs_running_and_their_ends_arrive(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 5")
    pid = int(news.hear())
    assert "1 job" in home.ok("stop")
    assert alive(pid)
    gate.tell()
    home.client.close()
    home.ok("start")
    assert home.wait(id)["exit_code"] == 5


def test_restart_keeps_running_jobs_and_queued_ones(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    home.ok("create-queue", "q", "--json", "{slot:1}")
    line = f"echo $$ > {news}; read x < {gate}"
    running = home.enqueue("q", "--require", "{slot:1}", "--", "sh", "-c", line)
    queued = home.enqueue("q", "--require", "{slot:1}", "--", "true")
    pid, before = int(news.hear()), home.daemon_pid()
    home.ok("restart")
    assert home.daemon_pid() != before
    shown = {job["id"]: job for job in home.document()["jobs"]}
    assert (shown[running]["state"], shown[running]["pid"]) == ("running", pid)
    assert shown[queued]["state"] == "queued"
    gate.tell()
    home.client.close()
    assert home.wait(running, queued)["state"] == "succeeded"


def test_stop_with_jobs_ends_them_and_keeps_the_queue(
    home: GrassHome, news: Fifo
) -> None:
    home.ok("create-queue", "q", "--max-running", "1")
    running = home.enqueue("q", f"echo $$ > {news}; exec sleep 1000")
    queued = home.enqueue("q", "--", "true")
    pid = int(news.hear())
    home.ok("stop", "--jobs")
    assert not alive(pid)
    home.client.close()
    home.ok("start")
    assert home.state(running) == "cancelled"
    assert home.wait(queued)["state"] == "succeeded"


def test_stop_with_jobs_ends_them_also_when_the_daemon_is_dead(
    home: GrassHome, news: Fifo
) -> None:
    id = home.enqueue(f"setsid sleep 1000 & echo $! > {news}; echo $$ > {news}; wait")
    pids = [int(news.hear()), int(news.hear())]
    home.kill_daemon()
    home.ok("stop", "--jobs")
    assert not any(map(alive, pids))
    assert home.daemon_pid() is None
    assert home.run("enqueue", "--", "true").returncode == 3
    home.ok("start")
    assert home.state(id) == "cancelled"


def test_a_pause_and_queues_survive_a_restart(home: GrassHome) -> None:
    home.ok("create-queue", "q", "--json", "{gpu:2}", "--max-running", "3")
    home.ok("pause")
    before = home.client.overview()
    home.ok("restart")
    home.client.close()
    after = home.client.overview()
    assert after["queues"] == before["queues"]
    assert after["workers"] == before["workers"]
    assert after["daemon"]["paused"]


def test_a_foreground_daemon_stops_at_ctrl_c(
    cold: GrassHome, gate: Fifo, news: Fifo
) -> None:
    process = cold.popen("daemon")
    until_ready(process)
    id = cold.enqueue(f"echo $$ > {news}; read x < {gate}")
    pid = int(news.hear())
    process.send_signal(signal.SIGHUP)
    assert cold.state(id) == "running"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert alive(pid)
    gate.tell()
    cold.client.close()
    assert cold.wait(id)["state"] == "succeeded"


def test_when_nothing_happens_nothing_is_spent(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = home.enqueue(f"echo x > {news}; read x < {gate}")
    home.enqueue("--require", "{cpu:1}", "--", "true")
    news.hear()
    gate.tell()
    # What a running job uses is measured: that is something that happens.
    home.wait(id, 2)
    home.client.close()
    pids = [pid for pid in (home.daemon_pid(), home.keeper_pid()) if pid]
    assert len(pids) == 2
    # The news of the last second are written first, which is work and not idling.
    until(lambda: spent_in(pids, IDLE_S), "they are never idle", lambda it: it == 0)


def spent_in(pids: list[int], seconds: float) -> int:
    """Return how many ticks processes use in some time."""
    before = sum(map(ticks, pids))
    time.sleep(seconds)
    return sum(map(ticks, pids)) - before


def test_the_keeper_leaves_when_it_has_nothing_to_keep(home: GrassHome) -> None:
    keeper = home.keeper_pid()
    assert keeper is not None
    home.wait(home.enqueue("--", "true"))
    home.ok("stop")
    await_end(keeper)


@pytest.mark.sqlite
def test_files_are_for_their_owner_alone(shared: GrassHome) -> None:
    shared.wait(shared.enqueue("--", "true"))
    assert shared.folder.stat().st_mode & 0o777 == 0o700
    for name in ("grass.db", "grass.sock", "daemon.log", "worker-id"):
        assert (shared.folder / name).stat().st_mode & 0o077 == 0, name


def test_a_home_that_cannot_be_made_is_named(cold: GrassHome) -> None:
    blocked = cold.desk / "file"
    blocked.write_text("")
    ran = cold.run("enqueue", "--", "true", env={"GRASS_HOME": str(blocked / "home")})
    assert ran.returncode == 1
    assert str(blocked / "home") in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.sqlite
def test_a_database_that_is_none_is_named(cold: GrassHome) -> None:
    cold.folder.mkdir(mode=0o700)
    (cold.folder / "grass.db").write_bytes(b"this is no database" * 100)
    ran = cold.run("enqueue", "--", "true")
    assert ran.returncode == 1
    assert "grass.db" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_start_that_fails_names_its_own_reason(cold: GrassHome) -> None:
    """Also of a defect in one of several tasks, which Python prints as a drawing."""
    (cold.folder / "keeper" / "instance").mkdir(parents=True)
    cold.folder.chmod(0o700)
    ran = cold.run("start")
    assert ran.returncode == 1
    assert "keeper/instance" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_start_that_was_killed_quotes_no_line_of_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    earlier = "ValueError: of an earlier start\n"
    other = "2026-01-01T00:00:00.000Z warning file.restored path=/x\n"
    other += '{"ts": "2026-01-01T00:00:00.000Z", "event": "file.restored"}\n'
    log.write_text(earlier + other)
    assert why_it_ended(str(log), len(earlier)) == "it was killed, and left no message"
    assert why_it_ended(str(log), 0) == "ValueError: of an earlier start"


def test_a_network_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = (
        "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
        "40 22 0:35 / /net rw shared:9 - nfs4 server:/export rw\n"
    )
    assert network_mount("/net/user/grass", mounts) is not None
    assert network_mount("/home/user/grass", mounts) is None
    monkeypatch.setattr(home_lock, "network_mount", lambda *_: "nfs4")
    home = Home(str(tmp_path / "home"))
    with pytest.raises(Refused, match="nfs4"), home_lock.locked(home):
        pass
    assert not (tmp_path / "home").exists()


def test_output_that_nobody_reads_ends_a_command_quietly(shared: GrassHome) -> None:
    shared.client.enqueue_many(["true"] * 50)
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [*GRASS, "show", "--all"],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=shared.environment,
        check=False,
    )
    os.close(writer)
    assert ran.stderr == b""
    assert ran.returncode == 128 + signal.SIGPIPE
    shared.client.wait(["all"])


def test_start_prints_the_pid_for_machines_too(cold: GrassHome) -> None:
    said = json.loads(cold.ok("start", "--json"))
    assert said == {"pid": cold.daemon_pid(), "started": True}
    kill(said["pid"], signal.SIGTERM)
    assert cold.daemon_pid() is None


@pytest.mark.sqlite
def test_a_daemon_that_lets_nobody_in_loads_no_cryptography(shared: GrassHome) -> None:
    loaded = Path(f"/proc/{shared.daemon_pid()}/maps").read_text()
    assert "uvloop" in loaded
    assert "cryptography" not in loaded
