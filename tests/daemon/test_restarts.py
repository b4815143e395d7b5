"""Commands that wait while the daemon is replaced, and daemons that jobs start."""

import signal

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.patience import until
from tests.support.processes import await_socket

pytestmark = pytest.mark.daemon


def test_who_waits_lives_through_a_restart(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    line = f"echo one; echo x > {news}; read x < {gate}; echo two; exit 3"
    running = home.popen("run", "--require", "{}", line)
    news.hear()
    id = home.enqueue("--require", "{}", line)
    news.hear()
    following = home.popen("logs", "-f", str(id))
    for process in (running, following):
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
    waiting = [home.popen("wait", "-q", one) for one in (str(id), "1-2")]
    for process in waiting:
        await_socket(process.pid)
    home.restart()
    gate.tell(times=2)
    assert [process.communicate(timeout=30) for process in waiting] == [("", "")] * 2
    assert [process.returncode for process in waiting] == [3, 1]
    assert following.communicate(timeout=30)[0] == "two\n"
    assert following.returncode == 0
    assert running.communicate(timeout=30) == ("two\n", "")
    assert running.returncode == 3
    home.ok("stop")
    assert home.log().count("daemon.ready") == 2
    assert "Traceback" not in home.log()


@pytest.mark.parametrize("words", [["wait"], ["logs", "-f"], ["events", "-f"]])
def test_an_interrupted_wait_leaves_no_trace(
    shared: GrassHome, gate: Fifo, news: Fifo, words: list[str]
) -> None:
    id = shared.enqueue(f"echo one; echo x > {news}; read x < {gate}")
    news.hear()
    job = [] if words[0] == "events" else [str(id)]
    waiting = shared.popen(*words, *job)
    await_socket(waiting.pid)
    shared.wait(shared.enqueue("--require", "{}", "--", "true"))
    waiting.send_signal(signal.SIGINT)
    _, errors = waiting.communicate(timeout=30)
    assert (waiting.returncode, errors) == (130, "")
    assert shared.state(id) == "running"
    gate.tell()
    shared.wait(id)
    assert "Traceback" not in shared.log()
    assert "rror" not in shared.log()


def test_a_daemon_that_a_job_restarts_outlives_the_job(home: GrassHome) -> None:
    before = home.daemon_pid()
    id = home.enqueue("grass restart && (setsid sleep 1000 &)")
    assert home.wait(id)["state"] == "succeeded", home.logs(id)
    after = home.daemon_pid()
    again = home.enqueue("grass restart")
    assert home.wait(again)["state"] == "succeeded", home.logs(again)
    check_alive(home, [before, after])


def test_a_daemon_that_a_job_starts_outlives_the_job(
    home: GrassHome, gate: Fifo, news: Fifo
) -> None:
    before = home.daemon_pid()
    id = home.enqueue(f"echo x > {news}; read x < {gate}; grass enqueue -- true")
    news.hear()
    home.kill_daemon()
    gate.tell()
    # Nobody else starts one: this waits until the job's own has come up.
    until(home.daemon_pid, "the job starts no daemon")
    assert home.wait(id)["state"] == "succeeded", home.logs(id)
    assert home.wait(int(home.logs(id)))["state"] == "succeeded"
    check_alive(home, [before])


def check_alive(home: GrassHome, earlier: list[int | None]) -> None:
    """The daemon is another one, and still there when its job's tree was ended."""
    pid = home.daemon_pid()
    assert pid not in (None, *earlier)
    home.wait(home.enqueue("--", "true"))
    assert home.daemon_pid() == pid
    assert home.log().count("daemon.ready") == len(earlier) + 1
    assert "Traceback" not in home.log()


def test_a_home_that_others_may_write_to_is_refused_before_the_stop(
    home: GrassHome,
) -> None:
    home.ok("start")
    before = home.client.overview()["daemon"]["pid"]
    home.folder.chmod(0o770)
    refused = home.run("restart")
    assert (refused.returncode, "others may write" in refused.stderr) == (5, True)
    assert "the daemon runs on as before" in refused.stderr
    home.folder.chmod(0o700)
    assert home.client.overview()["daemon"]["pid"] == before
