"""`grass run`: the job's output and exit code, what it waits for, and Ctrl-C."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .conftest import Grass
from .fake_daemon import DONE, FakeDaemon, problem

Start = Callable[..., subprocess.Popen[str]]

OUTPUT = "GET /jobs/7/output?follow=1&attempt={}"


def job(state: str, attempts: int = 1, **more: Any) -> dict[str, Any]:
    """Give job 7 as a daemon does, as far as `run` reads it."""
    return {
        "id": 7,
        "state": state,
        "reason": None,
        "exit_code": 0 if state == "succeeded" else None,
        "signal": None,
        "attempts": [{"number": n + 1, "output": None} for n in range(attempts)],
        **more,
    }


def raw(text: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)


@pytest.fixture
def start(surroundings: dict[str, str]) -> Iterator[Start]:
    """Start `grass run` beside the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str, **variables: str) -> subprocess.Popen[str]:
        running = subprocess.Popen(
            [sys.executable, "-m", "grass", "run", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**surroundings, **variables},
        )
        started.append(running)
        return running

    yield begin
    for running in started:
        if running.poll() is None:
            running.kill()
        running.communicate()


@pytest.fixture
def playing(fake_daemon: FakeDaemon) -> FakeDaemon:
    """A daemon that takes one job, which becomes job 7."""
    fake_daemon.answers["POST /jobs"] = {"first": 7, "last": 7, "hint": ""}
    return fake_daemon


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (job("succeeded"), 0, ""),
        (job("failed", exit_code=3), 3, ""),
        (
            job("failed", signal=9),
            137,
            "grass: job 7 failed: killed by SIGKILL (out of memory?)\n",
        ),
        (
            job("failed", signal=15, reason="time limit"),
            143,
            "grass: job 7 failed: time limit\n",
        ),
        (job("failed", reason="no program"), 125, "grass: job 7 failed: no program\n"),
        (job("cancelled", exit_code=4), 125, "grass: job 7 was cancelled\n"),
        (job("lost"), 125, "grass: job 7 was lost\n"),
    ],
)
def test_it_exits_as_the_job_did(
    playing: FakeDaemon, grass: Grass, end: dict[str, Any], code: int, said: str
) -> None:
    playing.answers[OUTPUT.format(1)] = raw(b"hello\n")
    playing.answers["GET /jobs/7"] = end
    ran = grass("run", "-g", "1", "--", "ls")
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, "hello\n", said)
    [body] = playing.bodies("POST /jobs")
    assert body["jobs"] == [{"command": ["ls"]}]
    assert body["defaults"] == {"require_also": {"gpu": 1}}
    assert grass("run", "-q", "-g", "1", "--", "ls").stderr == ""


def test_a_job_that_never_started_has_no_output(
    playing: FakeDaemon, grass: Grass
) -> None:
    playing.answers[OUTPUT.format(1)] = problem("not-found", "it has not started")
    playing.answers["GET /jobs/7"] = job("cancelled", 0, reason="job 3 failed")
    ran = grass("run", "--after", "3", "--", "ls")
    assert (ran.returncode, ran.stdout) == (125, "")
    assert ran.stderr == "grass: job 7 was cancelled: job 3 failed\n"


def test_the_output_of_every_attempt_is_shown(
    playing: FakeDaemon, grass: Grass
) -> None:
    playing.answers[OUTPUT.format(1)] = raw(b"one\n")
    playing.answers[OUTPUT.format(2)] = raw(b"two\n")
    playing.answers[OUTPUT.format(3)] = problem("usage", "there is no attempt 3")
    playing.answers["GET /jobs/7"] = [
        job("waiting", 1),
        job("running", 2),
        job("failed", 2, exit_code=5),
    ]
    ran = grass("run", "--retries", "1", "--", "ls")
    assert (ran.returncode, ran.stdout, ran.stderr) == (5, "one\ntwo\n", "")


def test_output_that_is_not_written_down_yet_is_waited_for(
    playing: FakeDaemon, grass: Grass
) -> None:
    late = problem("not-found", "job 7 has no output yet")
    playing.answers[OUTPUT.format(1)] = [late, late, raw(b"hello\n")]
    written = {"number": 1, "output": "1.log"}
    playing.answers["GET /jobs/7"] = [
        job("running"),
        job("succeeded", attempts=0) | {"attempts": [written]},
        job("succeeded"),
    ]
    ran = grass("run", "--", "ls")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "hello\n", "")


def test_a_hint_is_passed_on(playing: FakeDaemon, grass: Grass) -> None:
    playing.answers["POST /jobs"] = {"first": 7, "last": 7, "hint": "no GPU"}
    playing.answers[OUTPUT.format(1)] = raw(b"")
    playing.answers["GET /jobs/7"] = job("succeeded")
    assert grass("run", "--", "ls").stderr == "grass: no GPU\n"
    assert grass("run", "-q", "--", "ls").stderr == ""


def test_it_says_what_the_job_waits_for_until_it_runs(
    playing: FakeDaemon, start: Start
) -> None:
    all_said = threading.Event()
    states = [
        job("queued", 0, reason="gpu: 0 of 2 free"),
        job("queued", 0, reason="gpu: 0 of 2 free"),
        job("queued", 0, reason="gpu: 1 of 2 free"),
        job("running"),
    ]

    def look(_body: Any) -> Any:
        return states.pop(0) if states[1:] else states[0]

    def output(_body: Any) -> bytes:
        assert all_said.wait(30)
        return raw(b"done\n")

    playing.answers["GET /jobs/7"] = look
    playing.answers[OUTPUT.format(1)] = output
    running = start("--", "ls")
    assert running.stderr is not None
    said = [running.stderr.readline() for _ in range(3)]
    all_said.set()
    assert said == [
        "grass: job 7 waits: gpu: 0 of 2 free\n",
        "grass: job 7 waits: gpu: 1 of 2 free\n",
        "grass: job 7 runs\n",
    ]
    playing.answers["GET /jobs/7"] = job("succeeded")
    printed, errors = running.communicate(timeout=30)
    assert (printed, errors, running.returncode) == ("done\n", "", 0)


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (problem("never-fits", "gpu: 9 of 2"), 124, "grass: gpu: 9 of 2\n"),
        (problem("not-found", "no queue `q`"), 124, "grass: no queue `q`\n"),
        (problem("usage", "--array: no"), 2, "grass run: --array: no (see `grass run"),
    ],
)
def test_errors_of_grass_are_not_taken_for_the_jobs(
    fake_daemon: FakeDaemon, grass: Grass, answer: Any, code: int, message: str
) -> None:
    fake_daemon.answers["POST /jobs"] = answer
    ran = grass("run", "--", "ls")
    assert ran.returncode == code
    assert ran.stderr.startswith(message)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--", "ls"], 124, "grass: no daemon is running (start it with `grass start`"),
        (["no-such-queue-or-program"], 124, "grass: no daemon is running"),
        (["--array", "1-3", "--", "ls"], 2, "there is no option `--array`"),
        (["--from", "x"], 2, "there is no option `--from`"),
        (["--time-limit", "x", "--", "ls"], 2, "grass run: `x` is not a duration"),
        ([], 2, "grass run: no command was given"),
    ],
)
def test_bad_input_gets_one_line(
    grass: Grass, words: list[str], code: int, message: str
) -> None:
    ran = grass("run", *words)
    assert ran.returncode == code
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1


class Interrupted:
    """A job that runs until it is cancelled, and then as long as the test wants."""

    def __init__(self, playing: FakeDaemon) -> None:
        self.followed = threading.Event()
        self.cancelled = threading.Event()
        self.may_end = threading.Event()
        playing.answers["GET /jobs/7"] = job("cancelled", exit_code=4)
        playing.answers[OUTPUT.format(1)] = self._output
        playing.answers["POST /jobs/cancel"] = self._cancel

    def _cancel(self, _body: Any) -> Any:
        self.cancelled.set()
        return DONE

    def _output(self, _body: Any) -> bytes:
        self.followed.set()
        assert self.may_end.wait(30)
        return raw(b"bye\n")


def test_ctrl_c_cancels_and_waits_for_the_end(
    playing: FakeDaemon, start: Start
) -> None:
    story = Interrupted(playing)
    running = start("--", "ls")
    assert running.stderr is not None
    assert story.followed.wait(30)
    running.send_signal(signal.SIGINT)
    line = running.stderr.readline()
    assert line == "grass: cancelling job 7 (Ctrl-C again leaves it to itself)\n"
    assert story.cancelled.wait(30)
    story.may_end.set()
    printed, errors = running.communicate(timeout=30)
    assert (printed, running.returncode) == ("bye\n", 125)
    assert errors == "grass: job 7 was cancelled\n"
    [body] = playing.bodies("POST /jobs/cancel")
    assert body["select"] == ["7"]


def test_a_job_that_ends_before_it_is_cancelled_does_not_cut_ctrl_c_off(
    playing: FakeDaemon, start: Start
) -> None:
    story, looked = Interrupted(playing), threading.Event()
    ended = job("succeeded", exit_code=0)

    def look(_body: Any) -> Any:
        looked.set()
        return ended

    def cancel(_body: Any) -> Any:
        assert looked.wait(30)
        return problem("refused", "job 7 has ended")

    playing.answers["GET /jobs/7"] = look
    playing.answers["POST /jobs/cancel"] = cancel
    running = start("--", "ls")
    assert story.followed.wait(30)
    running.send_signal(signal.SIGINT)
    story.may_end.set()
    printed, errors = running.communicate(timeout=30)
    assert (printed, running.returncode) == ("bye\n", 0)
    assert errors.splitlines()[1:] == [
        "grass: job 7 could not be cancelled: job 7 has ended"
    ]


def test_a_second_ctrl_c_detaches_and_says_how_to_come_back(
    playing: FakeDaemon, start: Start
) -> None:
    story = Interrupted(playing)
    running = start("--", "ls")
    assert running.stderr is not None
    assert story.followed.wait(30)
    running.send_signal(signal.SIGINT)
    running.stderr.readline()
    running.send_signal(signal.SIGINT)
    printed, errors = running.communicate(timeout=30)
    assert (printed, running.returncode) == ("", 130)
    assert errors == "grass: job 7 is left to itself (`grass logs -f 7`)\n"
    story.may_end.set()


def test_a_cancel_that_was_not_answered_is_reported(
    playing: FakeDaemon, start: Start
) -> None:
    story, may_answer = Interrupted(playing), threading.Event()

    def cancel(_body: Any) -> Any:
        story.cancelled.set()
        assert may_answer.wait(30)
        return DONE

    playing.answers["POST /jobs/cancel"] = cancel
    running = start("--", "ls", GRASS_AUTOSTART="0")
    assert running.stderr is not None
    assert story.followed.wait(30)
    running.send_signal(signal.SIGINT)
    running.stderr.readline()
    assert story.cancelled.wait(30)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert errors == (
        "grass: job 7 was perhaps not cancelled: the daemon has not answered "
        "(`grass cancel 7`)\n"
    )
    may_answer.set()
    story.may_end.set()


def test_ctrl_c_before_the_job_has_an_id_counts_once_it_has(
    playing: FakeDaemon, start: Start
) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def enqueue(_body: Any) -> Any:
        asked.set()
        assert may_answer.wait(30)
        return {"first": 7, "last": 7, "hint": "handled"}

    playing.answers["POST /jobs"] = enqueue
    playing.answers["POST /jobs/cancel"] = DONE
    playing.answers[OUTPUT.format(1)] = problem("not-found", "it has not started")
    playing.answers["GET /jobs/7"] = job("cancelled", 0)
    running = start("--", "ls")
    assert asked.wait(30)
    running.send_signal(signal.SIGINT)
    may_answer.set()
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 125
    assert "cancelling job 7" in errors
    assert len(playing.bodies("POST /jobs/cancel")) == 1


def test_a_reader_that_goes_away_leaves_the_job_to_itself(
    playing: FakeDaemon, start: Start
) -> None:
    read, closed = threading.Event(), threading.Event()

    def output(_body: Any) -> bytes:
        read.set()
        assert closed.wait(30)
        return raw(b"x" * 100000)

    playing.answers[OUTPUT.format(1)] = output
    running = start("--", "ls")
    assert running.stdout is not None
    assert read.wait(30)
    running.stdout.close()
    closed.set()
    assert running.wait(30) == 141
    assert running.stderr is not None
    assert "job 7 is left to itself" in running.stderr.read()
    running.stdout = None
