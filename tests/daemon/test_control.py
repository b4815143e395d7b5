"""Holding and releasing, suspending and continuing."""

from shlex import quote

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import alive, await_stopped, is_stopped

pytestmark = pytest.mark.daemon


def test_a_held_job_starts_only_when_it_is_released(shared: GrassHome) -> None:
    held = shared.enqueue("--hold", "--", "true")
    assert shared.state(held) == "held"
    assert shared.reason(held) == f"held; `grass release {held}` lets it start"
    shared.wait(shared.enqueue("--", "true"))
    shared.replace_daemon()
    assert shared.state(held) == "held"
    assert shared.ok("release", str(held)) == "released 1 job\n"
    assert shared.wait(held)["state"] == "succeeded"


def test_a_job_that_waits_can_be_held(shared: GrassHome) -> None:
    shared.ok("pause")
    queued = shared.enqueue("--", "true")
    timed = shared.enqueue("--begin", "+1h", "--", "true")
    shared.ok("hold", "--yes", str(queued), str(timed))
    shared.ok("resume")
    shared.wait(shared.enqueue("--", "true"))
    assert shared.states([queued, timed]) == ["held", "held"]
    shared.ok("release", "--yes", "state:held")
    assert shared.state(timed) == "waiting"
    assert shared.wait(queued)["state"] == "succeeded"


def test_what_was_met_while_it_was_held_counts(shared: GrassHome, gate: Fifo) -> None:
    first = shared.enqueue(f"read x < {gate}")
    second = shared.enqueue("--hold", "--after", str(first), "--", "true")
    gate.tell()
    shared.wait(first)
    assert shared.state(second) == "held"
    shared.ok("release", str(second))
    assert shared.wait(second)["state"] == "succeeded"


def test_jobs_that_run_or_ended_are_left_alone_with_a_word(
    shared: GrassHome, gate: Fifo
) -> None:
    ended = shared.enqueue("--", "true")
    shared.wait(ended)
    running = shared.enqueue(f"read x < {gate}")
    for id, state in ((running, "running"), (ended, "has ended")):
        ran = shared.run("hold", str(id))
        assert (ran.returncode, ran.stdout) == (0, "")
        assert f"job {id}" in ran.stderr
        assert state in ran.stderr
        assert "not held" in shared.run("release", str(id)).stderr or id == ended
    assert f"job {ended} has ended" in shared.run("suspend", str(ended)).stderr
    assert "not suspended" in shared.run("continue", str(running)).stderr
    gate.tell()
    assert shared.wait(running)["state"] == "succeeded"


def free_slots(home: GrassHome) -> float:
    [worker] = home.client.overview()["workers"]
    return float(worker["free"]["slot"]["0"])


def tree(home: GrassHome, gate: Fifo, news: Fifo) -> tuple[int, list[int]]:
    """Enqueue a job of three processes, one in a session of its own."""
    home.ok("create-queue", "q", "--json", "{slot:1}", "--default-require", "{slot:1}")
    home.add_program("child", f"echo $$ > {news}; exec sleep 1000")
    child = home.bin / "child"
    id = home.enqueue(
        "q", f"setsid {child} & {child} & echo $$ > {news}; read x < {gate}; "
        f"echo went on > {news}; exit 6",
    )  # fmt: skip
    return id, [int(news.hear()) for _ in range(3)]


def test_a_suspended_tree_stands_still_and_keeps_its_units(
    shared: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id, pids = tree(shared, gate, news)
    other = shared.enqueue("q", "--", "true")
    assert shared.ok("suspend", str(id)) == "suspended 1 job\n"
    await_stopped(*pids)
    job = shared.client.job(id)
    assert (job["state"], job["flags"]) == ("running", ["suspended"])
    assert job["suspended_since"] > job["started_at"]
    assert "suspended" in shared.client.explain(id)["why"]
    assert "suspended" in shared.ok("show", "q")
    assert free_slots(shared) == 0
    assert shared.state(other) == "queued"
    gate.tell()
    shared.replace_daemon()
    # A successor leaves it as it is.
    assert shared.client.job(id)["flags"] == ["suspended"]
    assert all(map(is_stopped, pids))
    assert shared.ok("continue", str(id)) == "continued 1 job\n"
    assert news.hear() == "went on"
    assert shared.wait(id)["exit_code"] == 6
    assert shared.client.job(id)["suspended_since"] is None
    assert shared.wait(other)["state"] == "succeeded"


def test_a_suspended_job_can_be_cancelled(
    shared: GrassHome, gate: Fifo, news: Fifo
) -> None:
    id, pids = tree(shared, gate, news)
    shared.ok("suspend", str(id))
    await_stopped(*pids)
    shared.ok("cancel", str(id))
    assert not any(map(alive, pids))
    job = shared.client.job(id)
    assert (job["state"], job["signal"], job["flags"]) == ("cancelled", 15, [])


def handling(news: Fifo) -> tuple[str, ...]:
    """Give the words of a program that tells its pid and exits with 4 upon USR1."""
    program = (
        "import os, signal\n"
        "signal.signal(10, lambda *_: (print('saved', flush=True), os._exit(4)))\n"
        f"open({str(news)!r}, 'w').write(f'{{os.getppid()}}\\n')\n"
        "while True: signal.pause()"
    )
    # A shell that does not handle the signal runs it, and must not die of it.
    return ("--raw", "--", f"python3 -c {quote(program)}; exit $?")


def test_a_signal_reaches_a_running_job_and_is_in_the_journal(
    shared: GrassHome, news: Fifo
) -> None:
    id = shared.enqueue(*handling(news))
    shared.await_start(id, news)
    assert shared.ok("signal", "USR1", str(id)) == "signalled 1 job\n"
    assert shared.wait(id)["exit_code"] == 4
    assert shared.ok("logs", str(id)) == "saved\n"
    (event,) = shared.client.events(job=id, kind="signalled")
    assert event["data"] == {"signal": "USR1"}
    late = shared.run("signal", "USR1", str(id))
    assert f"job {id} has ended" in late.stderr
    refused = shared.run("signal", "STOP", str(id))
    assert refused.returncode == 2
    assert "grass suspend" in refused.stderr
    assert "no job was named" in shared.run("signal", "USR1").stderr


def test_a_signal_before_the_time_limit_comes_while_the_daemon_is_down(
    shared: GrassHome, news: Fifo
) -> None:
    words = ("--time-limit", "100s", "--signal", "USR1@98s")
    id = shared.enqueue(*words, *handling(news))
    news.hear()
    assert "USR1 1m38s before the time limit" in shared.ok("show", str(id))
    assert shared.client.job(id)["limit_signal"] == "USR1@98"
    shared.kill_daemon()
    assert shared.wait(id)["exit_code"] == 4
    for wrong in (("--signal", "USR1"), ("--signal", "USR1@5m", "--time-limit", "4m")):
        assert shared.run("enqueue", *wrong, "--", "true").returncode == 2


def test_suspending_twice_says_so(shared: GrassHome, gate: Fifo, news: Fifo) -> None:
    id, pids = tree(shared, gate, news)
    shared.ok("suspend", str(id))
    again = shared.run("suspend", str(id))
    assert f"job {id} is suspended already" in again.stderr
    await_stopped(*pids)
    shared.ok("continue", str(id))
    gate.tell()
    assert news.hear() == "went on"
    shared.wait(id)
