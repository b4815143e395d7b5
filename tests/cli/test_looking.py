"""Commands that look, beside a real daemon."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.screen import Screen

from .conftest import Grass

pytestmark = pytest.mark.daemon

GRASS = [sys.executable, "-m", "grass"]


def document(ran: subprocess.CompletedProcess[str]) -> Any:
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """Return a pipe; a job that reads it waits until somebody writes."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def test_jobs_are_listed_by_selector_and_filter(running: Grass) -> None:
    running("create-queue", "q1")
    running("enqueue", "--name", "train", "--project", "p", "exit 3")
    running("enqueue", "--name", "other", "--queue", "q1", "--", "true")
    running("wait", "1-2")
    assert running("show", "-q", "state:failed").stdout == "1\n"
    assert running("show", "-q", "name~tr", "queue:q1").stdout == "1\n2\n"
    assert running("show", "-q", "name~tr", "--queue", "q1").stdout == ""
    assert running("show", "-q", "q1", "--all").stdout == "2\n"
    assert running("show", "-q", "--project", "p").stdout == "1\n"
    assert running("show", "-q", "@p").stdout == "1\n"
    assert running("show", "-q", "--name", "other").stdout == "2\n"
    assert running("show", "-q", "--state", "failed,succeeded").stdout == "1\n2\n"
    assert running("show", "-q", "--sort", "-id", "--limit", "1").stdout == "2\n"
    assert running("show", "-q", "--limit", "1").stdout == "2\n"
    assert running("show", "--queues", "-q").stdout == "default\nq1\n"
    listed = running("show", "1-2", "--columns", "id,exit,name", "--sort", "name")
    assert listed.stdout == (
        "ID  EXIT    NAME\n2   exit 0  other\n1   exit 3  train\n\n2 shown\n"
    )


def test_what_does_not_exist_is_not_found(running: Grass) -> None:
    assert running("show", "7").returncode == 4
    assert running("show", "7-9").returncode == 4
    assert running("show", "nope").returncode == 4
    assert running("show", "nope", "--state", "failed").returncode == 4
    assert running("logs", "7").returncode == 4
    assert running("explain", "7").returncode == 4
    nothing = running("show", "state:failed")
    assert (nothing.returncode, nothing.stdout) == (0, "no such jobs\n")
    wrong = running("show", "--columns", "id,colour")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1


def test_one_job_is_shown_on_a_card(running: Grass) -> None:
    running("enqueue", "--name", "train", "--", "true")
    running("wait", "1")
    shown = running("show", "1").stdout
    assert shown.startswith("job 1: train\nstate       succeeded, exit 0\n")
    assert "\nATTEMPT  STATE" in shown
    assert document(running("show", "last", "--json"))["id"] == 1


def test_json_is_one_document_also_when_it_is_streamed(running: Grass) -> None:
    running("enqueue", "--from", "-", input="true\n" * 1500)
    running("wait", "1-1500")
    everything = document(running("show", "--json", "--all"))
    assert {"daemon", "workers", "queues", "jobs"} <= set(everything)
    assert [job["id"] for job in everything["jobs"]] == list(range(1, 1501))
    some = document(running("show", "--json", "--all", "1-1200"))
    assert [job["id"] for job in some["jobs"]] == list(range(1, 1201))
    usual = document(running("show", "--json", "1-1200"))
    assert [job["id"] for job in usual["jobs"]] == list(range(1101, 1201))
    assert "there may be more" in running("show", "1-1200").stdout


def test_a_hundred_thousand_jobs_do_not_slow_a_look(running: Grass) -> None:
    running("pause")
    empty = quickest(running)
    assert running("enqueue", "--array", "1-100000", "--", "true").returncode == 0
    assert quickest(running) < empty + 0.3
    assert quickest(running, "name~tr") < empty + 0.3
    one_page = running("show", "--columns", "id,state,name").stdout
    assert "1 [1]" in one_page
    assert len(one_page.splitlines()) < 100


def quickest(run: Grass, *words: str) -> float:
    """Return how long the quickest of some looks took."""
    took = []
    for _ in range(5):
        began = time.monotonic()
        assert run("show", *words).returncode == 0
        took.append(time.monotonic() - began)
    return min(took)


def test_explain_says_who_holds_what_a_job_waits_for(
    running: Grass, gate: Path
) -> None:
    running("create-queue", "q1", "--capacity", "{printer:1}")
    words = ("enqueue", "--queue", "q1", "--require", "{printer:1}")
    running(*words, "--name", "first", f"read x < {gate}; exit 3")
    running(*words, "--name", "second", "--", "true")
    told = document(running("explain", "2", "--json"))
    assert [holder["job"] for holder in told["holders"]] == [1]
    text = running("explain", "2").stdout
    assert text.startswith("job 2 is queued: ")
    assert "printer" in text
    gate.write_text("\n")
    running("wait", "1-2")
    assert "exit code: 3\n" in running("explain", "1").stdout


def test_the_journal_is_printed_and_followed(
    running: Grass, surroundings: dict[str, str]
) -> None:
    following = subprocess.Popen(
        [*GRASS, "events", "-f", "--json", "--kind", "finished"],
        env=surroundings,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    running("enqueue", "--", "true")
    running("wait", "1")
    assert json.loads(following.stdout.readline())["job"] == 1
    running("enqueue", "exit 3")
    assert json.loads(following.stdout.readline())["data"]["exit_code"] == 3
    following.send_signal(signal.SIGINT)
    assert following.wait() == 130
    following.stdout.close()
    running("wait", "2")
    lines = running("events", "--job", "1").stdout.splitlines()
    assert [line.split()[2] for line in lines][-2:] == ["started", "finished"]
    last = running("events", "-n", "1", "--json").stdout.splitlines()
    assert [json.loads(line)["job"] for line in last] == [2]
    assert running("events", "--since", "0s").stdout == ""
    wrong = running("events", "--kind", "finnished")
    assert (wrong.returncode, wrong.stdout) == (0, "")
    assert wrong.stderr == (
        "grass: no event is of the kind `finnished` (did you mean finished?)\n"
    )


def test_the_output_of_several_jobs_has_prefixes(running: Grass) -> None:
    running("enqueue", "printf 'a\\nb'")
    running("enqueue", "echo c")
    running("enqueue", "--", "true")
    running("wait", "1-3")
    assert running("logs", "1").stdout == "a\nb"
    assert running("logs", "1", "2").stdout == "1 | a\n1 | b\n2 | c\n"
    assert running("logs", "--tail", "1", "1-2").stdout == "1 | b\n2 | c\n"
    assert running("logs", "--tail", "1", "1").stdout == "b"
    followed = running("logs", "-f", "1-3").stdout
    assert sorted(followed.splitlines()) == ["1 | a", "1 | b", "2 | c"]
    lines = running("logs", "--json", "1-2").stdout.splitlines()
    assert [json.loads(line)["job"] for line in lines] == [1, 2]
    assert running("logs", "-f", "state:held").returncode == 4


def test_several_running_jobs_are_followed_at_once(
    running: Grass, surroundings: dict[str, str], gate: Path
) -> None:
    running("enqueue", "--require", "{}", f"echo one; read x < {gate}; echo three")
    running("enqueue", "--require", "{}", "echo two")
    following = subprocess.Popen(
        [*GRASS, "logs", "-f", "1", "2"], env=surroundings, stdout=subprocess.PIPE
    )
    assert following.stdout is not None
    first = {following.stdout.readline(), following.stdout.readline()}
    assert first == {b"1 | one\n", b"2 | two\n"}
    gate.write_text("\n")
    assert following.communicate()[0] == b"1 | three\n"
    assert following.returncode == 0


def test_a_watched_view_is_printed_anew_in_a_pipe(
    running: Grass, surroundings: dict[str, str]
) -> None:
    watching = subprocess.Popen(
        [*GRASS, "show", "--watch=0", "-q", "--all"],
        env=surroundings,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    running("enqueue", "--", "true")
    seen = ""
    while "1\n" not in seen:
        seen += watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    assert watching.wait() == 130
    watching.stdout.close()


def test_a_watched_view_is_redrawn_on_a_terminal_and_leaves_it_as_it_was(
    running: Grass, surroundings: dict[str, str]
) -> None:
    screen = Screen([*GRASS, "show", "--watch"], surroundings)
    screen.until("no jobs yet")
    running("enqueue", "--name", "shows-up", "--", "true")
    screen.until("1 succeeded")
    assert screen.interrupt() == 130
    assert screen.seen.startswith("\x1b[?1049h")
    assert screen.seen.endswith("\x1b[?25h\x1b[?1049l")
    assert "Traceback" not in screen.seen


def test_wait_shows_how_far_things_are_on_a_terminal_alone(
    running: Grass, surroundings: dict[str, str], gate: Path
) -> None:
    running("enqueue", "--require", "{}", f"read x < {gate}")
    running("enqueue", "--require", "{}", "--", "true")
    running("wait", "2")
    screen = Screen([*GRASS, "wait", "1-2"], surroundings)
    screen.until("1 of 2 jobs done, 1 running, 0 waiting")
    gate.write_text("\n")
    assert screen.ended() == 0
    assert screen.seen.endswith("\r\x1b[K")
    quiet = running("wait", "1-2")
    assert (quiet.stdout, quiet.stderr) == ("", "")
