"""Commands beside a real daemon."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Grass

pytestmark = pytest.mark.daemon


def test_a_job_runs_and_its_exit_code_and_output_arrive(running: Grass) -> None:
    enqueued = running("enqueue", "echo hello; exit 3")
    assert (enqueued.stdout, enqueued.returncode) == ("1\n", 0)
    assert running("wait", "1").returncode == 3
    assert running("logs", "1").stdout == "hello\n"
    assert running("logs", "-f", "last").stdout == "hello\n"


def test_queues_are_created_shown_and_deleted(running: Grass) -> None:
    words = ("create-queue", "--capacity", "{printer:1}", "print", "echo")
    assert running(*words).stdout == "created queue print\n"
    assert running(*words).stdout == "queue print is there already\n"
    running("enqueue", "--require", "{printer:1}", "print", "-x", "paper.pdf")
    assert running("wait", "1").returncode == 0
    assert running("logs", "1").stdout == "-x paper.pdf\n"
    shown = json.loads(running("show", "--json").stdout)
    assert [queue["name"] for queue in shown["queues"]] == ["default", "print"]
    assert running("delete-queue", "print").stdout == "deleted queue print\n"
    assert running("delete-queue", "print").returncode == 4


def test_a_broken_line_of_a_file_adds_nothing(running: Grass) -> None:
    lines = '{"command": ["true"]}\n\n{"command": ["true"], "require": "{gpu:"}\n'
    ran = running("enqueue", "--from", "-", input=lines)
    assert ran.returncode == 2
    assert "stdin, line 3: --require" in ran.stderr
    assert json.loads(running("show", "--all", "--json").stdout)["jobs"] == []


def test_a_file_of_shell_lines_is_enqueued_at_once(running: Grass) -> None:
    ran = running("enqueue", "--from", "-", input="echo 1\n# no\n\necho 2 && true\n")
    assert ran.stdout == "1-2\n"
    assert running("wait", "1-2").returncode == 0
    assert running("logs", "2").stdout == "2\n"


def test_waiting_gives_up_in_time_and_cancel_ends_jobs(running: Grass) -> None:
    running("enqueue", "--", "sleep", "1000")
    assert running("wait", "--timeout", "0.1s", "all").returncode == 7
    assert running("cancel", "all").stdout == "cancelled 1 job\n"
    assert running("wait", "1").returncode == 125
    assert running("cancel", "1").stdout.startswith("nothing to cancel")


def test_a_paused_queue_starts_nothing(running: Grass) -> None:
    assert running("pause").stdout == "grass is paused\n"
    running("enqueue", "--", "true")
    assert running("wait", "--timeout", "0.05", "1").returncode == 7
    running("resume")
    assert running("wait", "1").returncode == 0


def test_prune_forgets_ended_jobs(running: Grass) -> None:
    running("enqueue", "--", "true")
    running("wait", "1")
    tried = running("prune", "--older", "0s", "--dry-run")
    assert tried.stdout == "would forget 1 job with 0 B of output\n"
    assert json.loads(running("prune", "--older", "0s", "--json").stdout)["jobs"] == 1
    assert running("logs", "1").returncode == 4


def test_jobs_outlive_a_daemon_that_is_killed(
    running: Grass, surroundings: dict[str, str], tmp_path: Path
) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    running("enqueue", f"read x < {go}; exit 5")
    waiting = subprocess.Popen(
        [sys.executable, "-m", "grass", "wait", "1"], env=surroundings
    )
    pid = json.loads(running("show", "--json").stdout)["daemon"]["pid"]
    os.kill(pid, signal.SIGKILL)
    assert running("start").returncode == 0
    go.write_text("now\n")
    assert waiting.wait() == 5


def test_a_stop_is_remembered_until_start(running: Grass) -> None:
    assert running("stop").stdout == "grass is stopped\n"
    refused = running("enqueue", "--", "true", GRASS_AUTOSTART="1")
    assert refused.returncode == 3
    assert "grass was stopped" in refused.stderr
    assert running("stop").stdout.startswith("no daemon was running")
    assert running("start").stdout.startswith("grass is running (pid ")
    assert running("start").stdout.startswith("grass is running already")
    assert running("restart").returncode == 0


@pytest.fixture
def stopped_at_the_end(grass: Grass) -> Iterator[None]:
    yield
    assert grass("stop", "--jobs").returncode == 0


@pytest.mark.usefixtures("stopped_at_the_end")
def test_many_callers_at_once_start_one_daemon(surroundings: dict[str, str]) -> None:
    callers = [
        subprocess.Popen(
            [sys.executable, "-m", "grass", "enqueue", "--", "true"],
            env=surroundings,
            stdout=subprocess.PIPE,
        )
        for _ in range(20)
    ]
    printed = [int(caller.communicate()[0]) for caller in callers]
    assert sorted(printed) == list(range(1, 21))
    log = Path(surroundings["GRASS_HOME"], "daemon.log").read_text()
    assert log.count("daemon.ready") == 1
