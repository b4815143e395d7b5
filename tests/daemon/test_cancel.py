"""Cancelling: it is durable at once, and units are free when all is gone."""

import signal

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import GrassHome
from tests.support.processes import alive, await_end

pytestmark = pytest.mark.daemon

DEAF = "trap '' TERM"


def stubborn(home: GrassHome, news: Fifo, *words: str) -> tuple[int, int]:
    """Enqueue a job that ignores SIGTERM; return its id and pid."""
    line = f"{DEAF}; echo $$ > {news}; while :; do sleep 1000; done"
    id = home.enqueue(*words, line)
    return id, int(news.hear())


def test_a_tree_that_hides_is_gone_before_its_units_are_free(
    shared: GrassHome, news: Fifo
) -> None:
    """Children that called setsid twice, without a parent or an environment."""
    shared.ok("create-queue", "q", "--json", "{slot:1}", "--default-require",
              "{slot:1}")  # fmt: skip
    tell = f"{DEAF}; echo $$ > {news}; while :; do sleep 1000; done"
    shared.add_program("hide", tell)
    hide = shared.bin / "hide"
    line = (
        f"setsid setsid {hide} & (setsid sh -c 'setsid {hide} & setsid {hide} &' &); "
        f"env -i setsid env -i setsid {hide} & {hide} & {tell}"
    )
    id = shared.enqueue("q", line)
    pids = [int(news.hear()) for _ in range(6)]
    look = "; ".join(f"! kill -0 {pid} || exit 9" for pid in pids)
    after = shared.enqueue("q", f"true; {look}")
    assert shared.state(after) == "queued"
    assert "cancelled 1 job" in shared.ok("cancel", "--grace", "0.2s", str(id))
    assert [pid for pid in pids if alive(pid)] == []
    assert shared.state(id) == "cancelled"
    assert shared.wait(after)["exit_code"] == 0


def test_now_means_without_any_grace(shared: GrassHome, news: Fifo) -> None:
    line = f"trap 'echo bye' TERM; echo $$ > {news}; while :; do sleep 1000; done"
    id = shared.enqueue(line)
    pid = int(news.hear())
    shared.ok("cancel", "--now", str(id))
    assert not alive(pid)
    job = shared.client.job(id)
    assert (job["state"], job["signal"]) == ("cancelled", 9)
    assert shared.logs(id) == ""


@pytest.mark.parametrize("name", ["USR1", "SIGUSR1", "10"])
def test_another_signal_may_come_first(
    shared: GrassHome, news: Fifo, name: str
) -> None:
    line = f"trap 'echo heard; exit 4' USR1; echo x > {news}; sleep 1000 & wait"
    id = shared.enqueue(line)
    news.hear()
    shared.ok("cancel", "--signal", name, str(id))
    job = shared.client.job(id)
    assert (job["state"], job["exit_code"]) == ("cancelled", 4)
    assert shared.logs(id) == "heard\n"


def test_what_cannot_be_ended_shows_as_stopping(shared: GrassHome, news: Fifo) -> None:
    id, pid = stubborn(shared, news, "--retries", "3")
    said = shared.ok("cancel", "--no-wait", "--grace", "1h", str(id))
    assert said == "cancelled 1 job\n"
    assert alive(pid)
    for kill in (None, shared.replace_daemon):
        if kill is not None:
            kill()
        job = shared.client.job(id)
        assert (job["state"], job["flags"]) == ("running", ["stopping"])
        assert job["stopping_since"] >= job["started_at"]
        assert "stopping" in shared.ok("show")
        why = shared.client.explain(id)["why"]
        assert why == f"it is being stopped since {job['stopping_since']}"
    shared.ok("cancel", "--now", str(id))
    job = shared.client.job(id)
    assert (job["state"], len(job["attempts"])) == ("cancelled", 1)
    assert not alive(pid)


def test_a_cancelled_job_never_starts_whatever_happens(shared: GrassHome) -> None:
    shared.ok("pause")
    file = shared.desk / "started"
    ids = [
        shared.enqueue(*words, "--", "touch", str(file))
        for words in ((), ("--hold",), ("--begin", "+1h"), ("--after", "last"))
    ]
    shared.ok("cancel", "--yes", "--no-wait", *map(str, ids))
    shared.replace_daemon()
    shared.ok("resume")
    shared.wait(shared.enqueue("--", "true"))
    assert shared.states(ids) == ["cancelled"] * 4
    assert not file.exists()


def test_a_wish_counts_when_the_daemon_dies_right_after(
    shared: GrassHome, news: Fifo
) -> None:
    id, pid = stubborn(shared, news)
    shared.ok("cancel", "--no-wait", "--grace", "0.5s", str(id))
    shared.kill_daemon()
    await_end(pid)
    job = shared.wait(id)
    assert (job["state"], job["signal"]) == ("cancelled", 9)


def test_cancel_waits_over_a_kill(shared: GrassHome, news: Fifo) -> None:
    id, pid = stubborn(shared, news)
    cancelling = shared.popen("cancel", "--grace", "1s", str(id))
    shared.await_event("cancelled", id)
    shared.kill_daemon()
    assert cancelling.communicate(timeout=30) == ("cancelled 1 job\n", "")
    assert cancelling.returncode == 0
    assert not alive(pid)


def test_to_cancel_what_has_ended_does_nothing(shared: GrassHome) -> None:
    id = shared.enqueue("--", "true")
    before = shared.wait(id)
    assert "nothing to cancel" in shared.ok("cancel", str(id))
    assert shared.client.job(id) == before


def test_interrupting_cancel_does_not_take_it_back(
    shared: GrassHome, news: Fifo
) -> None:
    id, pid = stubborn(shared, news)
    cancelling = shared.popen("cancel", "--grace", "1h", str(id))
    shared.await_event("cancelled", id)
    cancelling.send_signal(signal.SIGINT)
    printed, errors = cancelling.communicate(timeout=30)
    assert (cancelling.returncode, printed) == (130, "")
    assert "Traceback" not in errors
    assert shared.client.job(id)["flags"] == ["stopping"]
    assert alive(pid)
