"""SIGKILL for the daemon, the keeper or both, with jobs in flight."""

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from grass.client.autostart import connect
from grass.config import Home
from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import alive, await_end, await_socket, kill

pytestmark = pytest.mark.daemon

KERNEL = tuple(int(part) for part in os.uname().release.split(".")[:2])
KERNEL_TELLS = KERNEL >= (6, 15)
"""Whether the exit code of a process whose parent was killed can be learned."""


@pytest.fixture(params=["sqlite", "postgres"])
def cold(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[GrassHome]:
    """A home with its queue in each of the databases."""
    in_postgres = request.param == "postgres"
    url = request.getfixturevalue("database") if in_postgres else None
    home = GrassHome(tmp_path, store=url)
    yield home
    home.end()


def test_jobs_run_on_without_their_daemon_and_nothing_is_forgotten(
    home: GrassHome, fifo: Callable[[str], Fifo], news: Fifo
) -> None:
    short, long = fifo("short"), fifo("long")
    ending = home.enqueue(f"echo $$ > {news}; read x < {short}; exit 5")
    ending_pid = int(news.hear())
    lasting = home.enqueue(f"echo $$ > {news}; read x < {long}; echo done")
    lasting_pid = int(news.hear())
    queued = home.enqueue("-c", str(os.cpu_count()), "--", "echo", "mine")
    begun = home.client.job(lasting)["started_at"]
    home.kill_daemon()
    assert alive(lasting_pid)
    short.tell()
    await_end(ending_pid)
    home.ok("start")
    ended = home.wait(ending)
    assert (ended["state"], ended["exit_code"]) == ("failed", 5)
    # Recorded by this daemon; how long it ran the keeper has measured.
    started_at = datetime.fromisoformat(ended["started_at"])
    back_at = home.client.overview()["daemon"]["started_at"]
    away = datetime.fromisoformat(back_at) - started_at
    assert ended["finished_at"] > back_at
    assert 0 < ended["ran_s"] < away.total_seconds()
    adopted = home.client.job(lasting)
    assert (adopted["state"], adopted["pid"]) == ("running", lasting_pid)
    assert adopted["started_at"] == begun
    assert home.state(queued) == "queued"
    assert home.enqueue("--", "true") == queued + 1
    long.tell()
    home.wait(lasting, queued, queued + 1)
    assert (home.logs(lasting), home.logs(queued)) == ("done\n", "mine\n")
    assert home.rows("SELECT max(attempts), min(attempts) FROM jobs") == [(1, 1)]


def test_the_next_command_starts_a_daemon_that_adopts(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = home.enqueue(f"echo $$ > {news}; read x < {gate}")
    pid = int(news.hear())
    home.kill_daemon()
    assert home.document()["jobs"][0]["pid"] == pid
    gate.tell()
    assert home.wait(id)["state"] == "succeeded"


def test_ids_never_repeat_even_after_prune(home: GrassHome) -> None:
    home.wait(home.enqueue("--", "true"))
    home.ok("prune", "--older", "0s", "--yes")
    home.kill_daemon()
    assert home.enqueue("--", "true") == 2
    home.wait(2)


def test_a_repeated_enqueue_is_known_by_its_key(home: GrassHome) -> None:
    body = {"jobs": [{"command": "true"}] * 3, "key": "once", "directory": "/"}
    replies = []
    for _ in range(2):
        connection = connect(Home(str(home.folder)))
        replies.append(connection.exchange("POST", "/jobs", body))
        connection.close()
        home.kill_daemon()
    assert replies[0] == replies[1]
    assert [job["id"] for job in home.document()["jobs"]] == [1, 2, 3]
    home.wait(1, 2, 3)


def test_a_caller_cut_off_by_a_kill_gets_one_job(home: GrassHome) -> None:
    pid = home.daemon_pid()
    assert pid is not None
    os.kill(pid, 19)
    caller = home.popen("enqueue", "--", "true")
    await_socket(caller.pid)
    kill(pid)
    printed, errors = caller.communicate(timeout=30)
    assert (printed, errors, caller.returncode) == ("1\n", "", 0)
    assert len(home.document()["jobs"]) == 1
    home.wait(1)


def test_a_stop_that_was_asked_for_is_carried_out_by_the_keeper(
    home: GrassHome, news: Fifo
) -> None:
    trap = f"trap 'echo asked > {news}' TERM"
    id = home.enqueue(f"{trap}; echo $$ > {news}; while :; do sleep 1000; done")
    pid = int(news.hear())
    home.ok("cancel", "--no-wait", "--grace", "1s", str(id))
    assert news.hear() == "asked"
    home.kill_daemon()
    await_end(pid)
    assert home.wait(id)["state"] == "cancelled"


def test_a_job_survives_its_keeper(home: GrassHome, gate: Fifo, news: Fifo) -> None:
    id = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 6")
    pid = home.await_start(id, news)
    home.kill_keeper()
    assert home.wait(home.enqueue("--", "true"))["state"] == "succeeded"
    assert alive(pid)
    job = home.client.job(id)
    assert (job["state"], job["pid"]) == ("running", pid)
    gate.tell()
    check_end_without_parent(home, id, 6)


def test_a_job_survives_both(home: GrassHome, gate: Fifo, news: Fifo) -> None:
    home.ok("create-queue", "q", "--json", "{slot:1}")
    id = home.enqueue("q", "--require", "{slot:1}", "--", "sh", "-c",
                      f"echo $$ > {news}; read x < {gate}; exit 6")  # fmt: skip
    pid = home.await_start(id, news)
    home.kill_daemon()
    home.kill_keeper()
    assert alive(pid)
    home.ok("start")
    assert home.state(id) == "running"
    waiting = home.enqueue("q", "--require", "{slot:1}", "--", "true")
    assert home.state(waiting) == "queued"
    gate.tell()
    check_end_without_parent(home, id, 6)
    assert home.wait(waiting)["state"] == "succeeded"


def test_an_end_that_nobody_saw_is_never_guessed(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = home.enqueue(f"echo $$ > {news}; read x < {gate}; exit 7")
    pid = home.await_start(id, news)
    home.kill_daemon()
    home.kill_keeper()
    gate.tell()
    await_end(pid)
    job = home.wait(id)
    # Until init has reaped it, the kernel still tells how it ended.
    assert (job["state"], job["exit_code"]) in (("failed", 7), ("lost", None))
    assert len(job["attempts"]) == 1


def check_end_without_parent(home: GrassHome, id: int, code: int) -> None:
    """The exit code where the kernel tells it, otherwise `lost`; never a guess."""
    job = home.wait(id)
    if KERNEL_TELLS:
        assert (job["state"], job["exit_code"]) == ("failed", code)
    else:
        assert (job["state"], job["exit_code"]) == ("lost", None)


def test_a_killed_keepers_job_can_be_cancelled(home: GrassHome, news: Fifo) -> None:
    id = home.enqueue(f"setsid sleep 1000 & echo $! > {news}; echo $$ > {news}; wait")
    pids = [int(news.hear()), home.await_start(id, news)]
    home.kill_keeper()
    home.ok("cancel", str(id))
    for pid in pids:
        await_end(pid)
    assert home.state(id) == "cancelled"


def test_after_a_reboot_running_jobs_are_lost_and_queued_ones_go_on(
    home: GrassHome, news: Fifo
) -> None:
    home.ok("create-queue", "q", "--max-running", "1")
    running = home.enqueue("q", f"echo $$ > {news}; exec sleep 1000")
    queued = home.enqueue("q", "--", "true")
    pid = int(news.hear())
    home.kill_daemon()
    home.kill_keeper()
    kill(pid)
    home.pretend_other_boot()
    lost = home.wait(running)
    assert (lost["state"], lost["exit_code"]) == ("lost", None)
    assert "restarted" in lost["reason"]
    assert home.wait(queued)["state"] == "succeeded"


def test_followers_and_waiters_see_a_restart_through(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id = home.enqueue(f"echo one; echo x > {news}; read x < {gate}; echo two; exit 3")
    news.hear()
    following, waiting = (
        home.popen("logs", "-f", str(id)),
        home.popen("wait", "-q", str(id)),
    )
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"
    home.kill_daemon()
    gate.tell()
    assert waiting.communicate(timeout=30) == ("", "")
    assert waiting.returncode == 3
    assert following.communicate(timeout=30)[0] == "two\n"
