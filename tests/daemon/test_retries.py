"""Jobs that run again when they fail."""

from datetime import datetime

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import Document, GrassHome

pytestmark = pytest.mark.daemon


def outcomes(job: Document) -> list[tuple[int | None, int | None]]:
    return [(one["exit_code"], one["signal"]) for one in job["attempts"]]


def test_a_job_is_tried_again_until_it_succeeds(shared: GrassHome) -> None:
    line = "echo attempt {attempt} $GRASS_ATTEMPT; test {attempt} = 3"
    id = shared.enqueue("--retries", "5", line)
    job = shared.wait(id)
    assert (job["state"], outcomes(job)) == ("succeeded", [(1, None)] * 2 + [(0, None)])
    assert job["retries_left"] == 3
    for number in (1, 2, 3):
        printed = shared.ok("logs", str(id), "--attempt", str(number))
        assert printed == f"attempt {number} {number}\n"
    assert shared.ok("logs", str(id)) == "attempt 3 3\n"


def test_no_more_often_than_was_asked_for(shared: GrassHome) -> None:
    id = shared.enqueue("--retries", "2", "--", "sh", "-c", "exit 4")
    job = shared.wait(id)
    assert (job["state"], job["exit_code"]) == ("failed", 4)
    assert outcomes(job) == [(4, None)] * 3
    assert job["retries_left"] == 0


def test_without_retries_a_job_runs_once(shared: GrassHome) -> None:
    id = shared.enqueue("--", "false")
    assert len(shared.wait(id)["attempts"]) == 1


def test_the_pause_between_attempts_doubles(shared: GrassHome) -> None:
    id = shared.enqueue("--retries", "2", "--backoff", "0.2s", "--", "false")
    attempts = shared.wait(id)["attempts"]
    ends = [datetime.fromisoformat(one["finished_at"]) for one in attempts]
    starts = [datetime.fromisoformat(one["started_at"]) for one in attempts]
    gaps = [
        (later - earlier).total_seconds()
        for earlier, later in zip(ends, starts[1:], strict=False)
    ]
    assert gaps[0] >= 0.2 - 0.01
    assert gaps[1] >= 0.4 - 0.01


@pytest.mark.parametrize(
    ("on", "line", "again"),
    [
        ("3,7", "exit 3", True),
        ("3,7", "exit 4", False),
        ("137", "kill -KILL $$", True),
    ],
)
def test_only_the_failures_that_were_named_are_retried(
    shared: GrassHome, on: str, line: str, again: bool
) -> None:
    id = shared.enqueue("--retries", "1", "--retry-on", on, f"true; {line}")
    job = shared.wait(id)
    assert job["state"] == "failed"
    assert len(job["attempts"]) == (2 if again else 1)


def test_a_time_limit_and_a_missing_program_can_be_named(shared: GrassHome) -> None:
    limit = shared.enqueue("--retries", "1", "--retry-on", "time-limit",
                           "--time-limit", "0.1s", "--", "sleep", "1000")  # fmt: skip
    missing = shared.enqueue("--retries", "1", "--retry-on", "not-started", "--",
                             "no-such-program")  # fmt: skip
    other = shared.enqueue("--retries", "1", "--retry-on", "time-limit", "--",
                           "no-such-program")  # fmt: skip
    shared.wait(limit, missing, other)
    counts = [len(shared.client.job(id)["attempts"]) for id in (limit, missing, other)]
    assert counts == [2, 2, 1]


def test_a_back_off_can_be_seen_and_lasts_over_a_kill(
    shared: GrassHome, news: Fifo
) -> None:
    line = f"echo {{attempt}} > {news}; exit 1"
    id = shared.enqueue("--retries", "1", "--backoff", "1h", line)
    assert news.hear() == "1"
    shared.await_event("retried", id)
    before = shared.client.job(id)
    assert before["state"] == "waiting"
    assert before["reason"] == f"retry 1 at {before['not_before']}"
    shared.replace_daemon()
    after = shared.client.job(id)
    assert (after["state"], after["not_before"]) == ("waiting", before["not_before"])
    assert after["retries_left"] == 0
    shared.ok("cancel", str(id))
    assert shared.state(id) == "cancelled"


def test_a_retry_that_is_due_while_no_daemon_runs_comes_after(
    shared: GrassHome, news: Fifo
) -> None:
    line = f"echo {{attempt}} > {news}; test {{attempt}} = 2"
    id = shared.enqueue("--retries", "1", "--backoff", "0.3s", line)
    assert news.hear() == "1"
    shared.replace_daemon()
    assert shared.wait(id)["state"] == "succeeded"
    assert news.hear() == "2"


def test_a_cancelled_job_is_not_tried_again(shared: GrassHome, news: Fifo) -> None:
    id = shared.enqueue("--retries", "3", f"echo x > {news}; exec sleep 1000")
    news.hear()
    shared.ok("cancel", str(id))
    job = shared.client.job(id)
    assert (job["state"], len(job["attempts"])) == ("cancelled", 1)


@pytest.mark.parametrize(
    "words",
    [
        ("--retry-on", "sometimes"),
        ("--nice", "20"),
    ],
)
def test_bad_limits_add_no_job(shared: GrassHome, words: tuple[str, str]) -> None:
    before = shared.client.overview()["daemon"]["jobs"]
    refused = shared.run("enqueue", *words, "--", "true")
    assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
    assert refused.stderr.count("\n") == 1
    assert shared.client.overview()["daemon"]["jobs"] == before


def test_a_job_can_be_nice(shared: GrassHome) -> None:
    id = shared.enqueue("--nice", "7", "--", "nice")
    assert shared.wait(id)["state"] == "succeeded"
    assert int(shared.logs(id)) >= 7
