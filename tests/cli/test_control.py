"""Every verb beside a real daemon."""

import json
import os
import signal
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from .conftest import Grass

pytestmark = pytest.mark.daemon


def shown(running: Grass, id: int) -> dict[str, Any]:
    """Return a job as `show` knows it."""
    document = json.loads(running("show", "--all", "--json").stdout)
    [job] = [job for job in document["jobs"] if job["id"] == id]
    return dict(job)


def states(running: Grass) -> list[str]:
    document = json.loads(running("show", "--all", "--json").stdout)
    return [job["state"] for job in document["jobs"]]


def test_an_array_runs_each_index_and_can_be_capped(running: Grass) -> None:
    line = 'echo "{index} $GRASS_ARRAY_INDEX"'
    assert running("enqueue", "--array", "0-20:10%1", line).stdout == "1-3\n"
    assert running("wait", "1-3").returncode == 0
    assert [running("logs", str(id)).stdout for id in (1, 2, 3)] == [
        "0 0\n",
        "10 10\n",
        "20 20\n",
    ]


def test_jobs_wait_for_others_and_for_a_time(running: Grass) -> None:
    running("enqueue", "--hold", "--", "true")
    running("enqueue", "--after", "1", "--", "true")
    running("enqueue", "--after", "1:failed", "--", "true")
    running("enqueue", "--begin", "+1h", "--", "true")
    assert states(running) == ["held", "waiting", "waiting", "waiting"]
    begins = datetime.fromisoformat(shown(running, 4)["begin_at"])
    ahead = begins - datetime.now().astimezone()
    assert timedelta(minutes=59) < ahead < timedelta(minutes=61)
    refused = running("enqueue", "--after", "99", "--", "true")
    assert (refused.returncode, refused.stdout) == (4, "")
    assert running("release", "1").stdout == "released 1 job\n"
    assert running("wait", "2").returncode == 0
    assert running("wait", "3").returncode == 125
    assert running("edit", "4", "--begin", "none").stdout == "edited 1 job\n"
    assert running("wait", "4").returncode == 0


def test_limits_and_retries_are_kept(running: Grass) -> None:
    limited = running("run", "--time-limit", "0.2", "--grace", "1s", "--", "sleep", "9")
    assert limited.returncode == 128 + signal.SIGTERM
    assert shown(running, 1)["reason"] == "time limit"
    retried = running("run", "--retries", "5", "--retry-on", "4", "exit $GRASS_ATTEMPT")
    assert retried.returncode == 1
    again = "exit $((5 - GRASS_ATTEMPT))"
    retried = running("run", "--retries", "5", "--retry-on", "4", again)
    assert retried.returncode == 3
    assert running("run", "--nice", "7", "--", "nice").stdout == "7\n"


def test_held_jobs_start_when_they_are_released(running: Grass) -> None:
    running("pause")
    running("enqueue", "--array", "1-3", "--", "true")
    many = running("hold", "1-3")
    assert many.returncode == 2
    assert "this would hold 3 jobs" in many.stderr
    assert running("hold", "--yes", "1-2").stdout == "held 2 jobs\n"
    assert running("hold", "--dry-run", "-q", "1-3").stdout == "3\n"
    running("resume")
    assert running("wait", "3").returncode == 0
    assert states(running) == ["held", "held", "succeeded"]
    assert running("release", "-y", "-q", "all").stdout == "1\n2\n"
    assert running("wait", "1-2").returncode == 0


def test_an_ended_job_runs_again_with_its_old_output_kept(running: Grass) -> None:
    assert running("run", "echo one; exit 3").returncode == 3
    assert running("rerun", "1", "--edit", "--", "echo", "two").stdout == "1\n"
    assert running("wait", "1").returncode == 0
    assert running("logs", "1").stdout == "two\n"
    assert running("logs", "--attempt", "1", "1").stdout == "one\n"
    running("rerun", "1", "--hold", "--name", "again", "--priority", "4")
    job = shown(running, 1)
    assert (job["state"], job["name"], job["priority"]) == ("held", "again", 4)
    assert running("rerun", "1").returncode == 5
    assert running("rerun", "--yes", "state:held").stdout.startswith("nothing to rerun")


def test_a_job_that_has_not_started_is_changed(running: Grass) -> None:
    running("create-queue", "q", "--max-fails", "3")
    running("enqueue", "--hold", "--", "false")
    words = ("--queue", "q", "--time-limit", "1h", "--retries", "2", "--env", "A=b")
    assert running("edit", "1", *words, "--", "echo $A").stdout == "edited 1 job\n"
    job = shown(running, 1)
    assert (job["queue"], job["time_limit_s"], job["retries"]) == ("q", 3600, 2)
    running("edit", "1", "--time-limit", "none")
    assert shown(running, 1)["time_limit_s"] is None
    running("release", "1")
    assert running("wait", "1").returncode == 0
    assert running("logs", "1").stdout == "b\n"
    assert running("edit", "1", "--priority", "1").returncode == 5


def test_a_running_job_is_suspended_and_goes_on(running: Grass, tmp_path: Path) -> None:
    ready, go = tmp_path / "ready", tmp_path / "go"
    for fifo in (ready, go):
        os.mkfifo(fifo)
    running("enqueue", f": > {ready}; read x < {go}; exit 4")
    ready.read_text()
    assert running("suspend", "1").stdout == "suspended 1 job\n"
    assert "suspended" in shown(running, 1)["flags"]
    assert running("continue", "1").stdout == "continued 1 job\n"
    assert "suspended" not in shown(running, 1)["flags"]
    go.write_text("now\n")
    assert running("wait", "1").returncode == 4
    assert "nothing to suspend" in running("suspend", "--yes", "1-1").stdout


def test_cancel_begins_with_the_chosen_signal(running: Grass, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    running("enqueue", f"trap 'echo usr1; exit' USR1; : > {ready}; sleep 1000 & wait")
    ready.read_text()
    assert running("cancel", "--signal", "usr1", "1").stdout == "cancelled 1 job\n"
    assert running("logs", "1").stdout == "usr1\n"


def test_ended_jobs_are_removed(running: Grass) -> None:
    running("enqueue", "--array", "1-3", "--", "true")
    running("wait", "1-3")
    running("enqueue", "--hold", "--", "true")
    assert running("remove", "4").returncode == 5
    removed = running("remove", "--yes", "1-2", "4")
    assert removed.stdout == "removed 2 jobs with 0 B of output\n"
    assert running("logs", "1").returncode == 4
    assert running("remove", "-q", "3").stdout == "3\n"
    assert states(running) == ["held"]


def test_units_come_and_go_while_the_daemon_runs(running: Grass) -> None:
    assert running("capacity", "add", "{printer:{'4':1}}").returncode == 0
    assert "printer" in running("capacity", "show").stdout
    words = ("--require", "{printer:1}", "echo {printer}")
    assert running("run", *words).stdout == "4\n"
    assert running("drain", "printer:4").returncode == 0
    running("enqueue", *words)
    assert running("wait", "--timeout", "0.05", "2").returncode == 7
    assert running("resume", "printer:4").stdout == "printer:4 is in use again\n"
    assert running("wait", "2").returncode == 0
    assert running("capacity", "remove", "printer:4").returncode == 0
    assert running("run", *words).returncode == 124
    assert running("drain", "printer:4").returncode == 4


def test_a_queue_is_changed_and_pauses_after_too_many_failures(running: Grass) -> None:
    running("create-queue", "q", "--max-running", "1")
    changed = running("edit-queue", "q", "--max-running", "none", "--max-fails", "2")
    assert changed.stdout == "changed queue q\n"
    running("enqueue", "q", "--array", "1-5%1", "--", "false")
    running("wait", "1-2")
    [queue] = json.loads(running("show", "q", "--json").stdout)["queues"]
    assert (queue["paused"], queue["max_running"]) == (True, None)
    assert states(running)[2:] == ["queued"] * 3
    assert running("edit-queue", "q", "--", "echo").returncode == 0
    assert running("edit-queue", "nope", "--max-fails", "1").returncode == 4
