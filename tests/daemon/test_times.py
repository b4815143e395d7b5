"""When a job starts, and how long it may run."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.support.fifo import Fifo
from tests.support.homes import Document, GrassHome
from tests.support.patience import in_time
from tests.support.processes import alive, await_end

pytestmark = pytest.mark.daemon

DEAF = "trap '' TERM"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def took_s(job: Document) -> float:
    return float(job["ran_s"])


def test_a_job_begins_by_itself_and_not_before(shared: GrassHome) -> None:
    def asked(limit_s: float) -> Document | None:
        id = shared.enqueue("--begin", f"+{limit_s}s", "--", "true")
        job = shared.client.job(id)
        return job if job["state"] == "waiting" else None

    job = in_time(asked, "it began at once")
    assert job["reason"] == f"begins {job['begin_at']}"
    ended = shared.wait(job["id"])
    assert ended["state"] == "succeeded"
    assert moment(ended["started_at"]) >= moment(ended["begin_at"])


def test_a_time_that_comes_while_no_daemon_runs_is_not_missed(
    shared: GrassHome,
) -> None:
    soon = shared.enqueue("--begin", "+0.3s", "--", "true")
    late = shared.enqueue("--begin", "+2h", "--", "true")
    shared.replace_daemon()
    ended = shared.wait(soon)
    assert moment(ended["started_at"]) >= moment(ended["begin_at"])
    assert shared.state(late) == "waiting"


def test_a_time_of_day_is_the_callers(shared: GrassHome) -> None:
    id = shared.enqueue("--begin", "22:00", "--", "true", env={"TZ": "Asia/Tokyo"})
    begins = moment(shared.client.job(id)["begin_at"]).astimezone(UTC)
    assert (begins.hour, begins.minute, begins.second) == (13, 0, 0)
    assert timedelta(0) < begins - datetime.now(UTC) <= timedelta(days=1)
    shared.ok("edit", str(id), "--begin", "2099-01-02T03:04+01:00")
    assert shared.client.job(id)["begin_at"].startswith("2099-01-02T02:04:00")
    shared.ok("edit", str(id), "--begin", "none")
    assert shared.wait(id)["state"] == "succeeded"


def test_a_time_that_has_passed_does_not_hold_a_job(shared: GrassHome) -> None:
    id = shared.enqueue("--begin", "2020-01-01 08:00", "--", "true")
    assert shared.wait(id)["state"] == "succeeded"


@pytest.mark.parametrize(
    "words",
    [
        ("--begin", "tomorrow"),
        ("--time-limit", "0"),
    ],
)
def test_a_bad_time_adds_no_job(shared: GrassHome, words: tuple[str, str]) -> None:
    before = shared.client.overview()["daemon"]["jobs"]
    refused = shared.run("enqueue", *words, "--", "true")
    assert (refused.returncode, refused.stdout) == (2, ""), refused.stderr
    assert refused.stderr.count("\n") == 1
    assert shared.client.overview()["daemon"]["jobs"] == before


def test_a_job_that_takes_too_long_is_ended(shared: GrassHome) -> None:
    id = shared.enqueue("--time-limit", "0.3s", "--", "sleep", "1000")
    job = shared.wait(id)
    assert (job["state"], job["reason"], job["signal"]) == ("failed", "time limit", 15)
    assert 0.3 <= took_s(job) < 10
    assert shared.run("wait", str(id)).returncode == 143


def test_a_job_in_time_is_left_alone(shared: GrassHome) -> None:
    id = shared.enqueue("--time-limit", "1:30:00", "--", "true")
    job = shared.wait(id)
    assert (job["state"], job["time_limit_s"]) == ("succeeded", 5400)


def test_it_may_clean_up_but_has_failed_all_the_same(shared: GrassHome) -> None:
    line = "trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait"
    job = in_time(partial(limited, shared, [line]), "it does not come up")
    assert (job["state"], job["reason"], job["exit_code"]) == (
        "failed",
        "time limit",
        0,
    )
    assert shared.logs(job["id"]) == "ready\nbye\n"


def limited(home: GrassHome, words: Sequence[str], limit_s: float) -> Document | None:
    """Run a job into its time limit; None if that came before it was ready."""
    id = home.enqueue("--time-limit", f"{limit_s}s", *words)
    job = home.wait(id)
    return job if home.logs(id).startswith("ready") else None


def test_after_its_grace_it_is_killed(shared: GrassHome) -> None:
    line = f"{DEAF}; echo ready; while :; do sleep 1000; done"
    words = ("--grace", "0.2s", line)
    job = in_time(partial(limited, shared, words), "it does not come up")
    assert (job["state"], job["reason"], job["signal"]) == ("failed", "time limit", 9)
    assert job["grace_s"] == pytest.approx(0.2)


def test_the_grace_of_a_job_counts_when_it_is_cancelled(
    shared: GrassHome, news: Fifo
) -> None:
    line = f"{DEAF}; echo x > {news}; while :; do sleep 1000; done"
    id = shared.enqueue("--grace", "0.1s", line)
    news.hear()
    shared.ok("cancel", str(id))
    job = shared.client.job(id)
    assert (job["state"], job["signal"]) == ("cancelled", 9)


def test_the_limit_is_kept_while_no_daemon_runs(shared: GrassHome) -> None:
    line = f"{DEAF}; echo $$; while :; do sleep 1000; done"

    def played(limit_s: float) -> float | None:
        limits = ("--time-limit", f"{limit_s}s", "--grace", "0.2s")
        id = shared.enqueue(*limits, line)
        pid = shared.await_output(id)
        shared.kill_daemon()
        if not pid or not alive(int(pid)):
            shared.ok("start")
            return None
        await_end(int(pid))
        assert shared.daemon_pid() is None
        job = shared.wait(id)
        assert (job["state"], job["reason"]) == ("failed", "time limit")
        assert job["signal"] == 9
        return took_s(job) - limit_s

    assert in_time(played, "it ends before the daemon") >= 0


def test_a_new_daemon_does_not_start_the_clock_again(
    shared: GrassHome, news: Fifo
) -> None:
    id = shared.enqueue("--time-limit", "1.5s", f"echo x > {news}; sleep 1000")
    news.hear()
    shared.replace_daemon()
    ready = datetime.now(UTC)
    job = shared.wait(id)
    assert (job["state"], job["reason"]) == ("failed", "time limit")
    # Had it begun anew, all the time until then would have come on top.
    before_s = (ready - moment(job["started_at"])).total_seconds()
    assert 1.5 <= took_s(job) < 1.5 + before_s / 2


def test_a_limit_can_be_changed_until_the_job_starts(shared: GrassHome) -> None:
    id = shared.enqueue("--hold", "--time-limit", "1h", "--", "sleep", "1000")
    shared.ok("edit", str(id), "--time-limit", "0.2s")
    shared.ok("release", str(id))
    assert shared.wait(id)["reason"] == "time limit"
    again = shared.enqueue("--hold", "--time-limit", "1h", "--", "true")
    shared.ok("edit", str(again), "--time-limit", "none")
    assert shared.client.job(again)["time_limit_s"] is None
