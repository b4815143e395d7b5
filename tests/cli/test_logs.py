"""`grass logs` of a job whose worker is unreachable."""

from typing import Any

import pytest

from grass.cli.main import dispatch
from grass.cli.printing import quantities
from grass.client import long_calls

from .conftest import Call, Called
from .fake_daemon import FakeDaemon, problem

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nGrass-Begin: 1:0\r\n\r\n"
AWAY = problem(
    "unreachable",
    "worker `rack` is unreachable since 2026-01-02T03:04:05Z",
    "the output of job 7 is there",
)
LASTING = "grass: worker `rack` is unreachable for 5m05s"
OUT_OF_SIGHT: dict[str, Any] = {
    "id": 7,
    "state": "running",
    "worker": "rack",
    "unreachable": True,
    "unreachable_since": "2026-01-02T03:04:05Z",
}
IN_SIGHT = {**OUT_OF_SIGHT, "unreachable": False}
FIRST = "GET /jobs/7/output?follow=1"
AGAIN = "GET /jobs/7/output?follow=1&begin=1%3A0"


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is looked for more often, so that a test need not wait."""
    monkeypatch.setattr(long_calls, "LOOK_S", 0.01)


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    """Run a command within the test; output is written past Python's own stdout."""

    def run(*words: str) -> Called:
        return Called(dispatch(list(words)), *capfd.readouterr())

    return run


def test_one_line_says_which_worker_is_unreachable(
    fake_daemon: FakeDaemon, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_daemon.answers["GET /jobs/7/output"] = AWAY
    monkeypatch.setattr(quantities, "brief", lambda _: "5m05s")
    assert call("logs", "7") == (
        3,
        "",
        f"{LASTING} (the output of job 7 is there)\n",
    )


def test_a_worker_that_goes_away_meanwhile_is_named_too(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["GET /jobs/7/output"] = CHUNKED + b"2\r\nab\r\n"
    fake_daemon.answers["GET /jobs/7/output?tail=0"] = AWAY
    fake_daemon.cut_after = 1
    code, out, err = call("logs", "7")
    assert (code, out) == (3, "ab")
    assert err.startswith("grass: worker `rack` is unreachable for ")


def test_output_that_is_not_there_keeps_its_own_words(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["GET /jobs/7/output"] = problem("not-found", "the file is gone")
    assert call("logs", "7") == (4, "", "grass: the file is gone\n")


def test_of_several_jobs_those_that_can_be_read_are(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["POST /jobs/select"] = {"jobs": [7, 8], "count": 2}
    fake_daemon.answers["GET /jobs/7/output"] = AWAY
    fake_daemon.answers["GET /jobs/8/output"] = CHUNKED + b"2\r\na\n\r\n0\r\n\r\n"
    code, out, err = call("logs", "7", "8")
    assert (code, out) == (3, "8 | a\n")
    assert err.count("\n") == 1


def test_following_says_for_whom_it_waits_and_goes_on(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["GET /jobs/7"] = [
        IN_SIGHT,  # The id is looked up first.
        *(OUT_OF_SIGHT, OUT_OF_SIGHT, IN_SIGHT, IN_SIGHT),
    ]
    fake_daemon.answers[AGAIN] = [AWAY, CHUNKED + b"4\r\nabcd\r\n0\r\n\r\n"]

    def cut_once(_body: object) -> bytes:
        fake_daemon.cut_after = 1
        return CHUNKED + b"2\r\nab\r\n"

    fake_daemon.answers[FIRST] = cut_once
    code, out, err = call("logs", "-f", "7")
    assert (code, out) == (0, "abcd")
    assert err.startswith("grass: worker `rack` is unreachable for ")
    assert err.endswith("; job 7 is followed on when it is back\n")
    assert err.count("\n") == 1


def test_a_job_that_has_ended_out_of_reach_is_not_waited_for(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["GET /jobs/7"] = {**IN_SIGHT, "state": "lost"}
    fake_daemon.answers[FIRST] = AWAY
    code, out, err = call("logs", "-f", "7")
    assert (code, out) == (3, "")
    assert err.startswith("grass: worker `rack` is unreachable for ")
