"""`grass workers`: who they are, how they are, and forgetting one."""

import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from grass.cli.commands.workers import rows

from .conftest import Call, Grass
from .fake_daemon import FakeDaemon, problem

NOW = datetime(2026, 1, 2, 3, 10, tzinfo=UTC)
DESK: dict[str, Any] = {
    "id": "w1",
    "name": "desk",
    "connected": True,
    "unreachable_since": None,
    "draining": False,
    "address": "10.0.0.2:4711",
    "labels": ["a100", "big"],
    "capacity": {"cpu": {"0": 1, "1": 1}, "gpu": {"0": 1}},
    "free": {"cpu": {"0": 0.5, "1": 1}},
    "running": 3,
    "heard_at": "2026-01-02T03:09:57Z",
}
GONE = {
    **DESK,
    "name": "lab",
    "connected": False,
    "unreachable_since": "2026-01-02T03:04:55Z",
    "draining": True,
    "heard_at": None,
    "address": "10.0.0.3",
    "labels": [],
}
FORMER = {**GONE, "address": None}
OWN = {**DESK, "address": None}


def test_a_worker_has_a_row() -> None:
    assert rows([DESK, {**DESK, "draining": True}, GONE], NOW) == [
        [
            *("desk", "connected", "10.0.0.2:4711", "3", "3s ago", "a100,big"),
            "cpu 1.5/2, gpu 0/1",
        ],
        [
            *("desk", "draining", "10.0.0.2:4711", "3", "3s ago", "a100,big"),
            "cpu 1.5/2, gpu 0/1",
        ],
        [
            *("lab", "unreachable for 5m05s", "10.0.0.3", "3", "", ""),
            "cpu 1.5/2, gpu 0/1",
        ],
    ]


def test_what_a_broker_of_another_version_leaves_out_is_empty() -> None:
    told = [{"name": "desk", "connected": True}, {"name": "lab", "connected": False}]
    assert rows(told, NOW) == [
        ["desk", "connected", "", "0", "", "", ""],
        ["lab", "unreachable", "", "0", "", "", ""],
    ]


def test_workers_are_listed(fake_daemon: FakeDaemon, call: Call) -> None:
    fake_daemon.answers["GET /workers"] = {"workers": [DESK, GONE]}
    shown = call("workers").out.splitlines()
    assert shown[0].split() == [
        *("WORKER", "STATE", "ADDRESS", "RUNNING", "HEARD", "LABELS", "FREE")
    ]
    assert shown[1].split()[:4] == ["desk", "connected", "10.0.0.2:4711", "3"]
    assert json.loads(call("workers", "--json").out) == {"workers": [DESK, GONE]}


def test_the_worker_that_a_broker_had_before_no_worker_is_off(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["GET /workers"] = {"workers": [OWN, GONE, FORMER]}
    shown = call("workers")
    states = [line.split()[1] for line in shown.out.splitlines()[1:]]
    assert states == ["connected", "unreachable", "off"]
    assert shown.err == (
        "grass: worker lab was part of the broker's daemon, which has another identity,"
        " desk, now; `grass workers forget lab` removes it\n"
    )
    fake_daemon.answers["GET /workers"] = {"workers": [GONE, FORMER]}
    assert "which runs with --no-worker now" in call("workers").err
    assert call("workers", "--json").err == ""


def test_a_worker_is_forgotten(fake_daemon: FakeDaemon, call: Call) -> None:
    done = {"jobs": [7, 8], "warnings": ["its token is revoked"], "changed": True}
    one, two = {**done, "jobs": []}, {**done, "queues": ["fit", "train"]}
    fake_daemon.answers["DELETE /workers/lab"] = [done, one, two, done]
    forgot = call("workers", "forget", "lab")
    assert forgot == (
        0,
        "forgot worker lab: 2 jobs lost\n",
        "grass: its token is revoked\n",
    )
    assert call("workers", "forget", "lab").out == "forgot worker lab: no job lost\n"
    assert call("workers", "forget", "lab").out == (
        "forgot worker lab: 2 jobs lost, its views of fit, train gone\n"
    )
    told = json.loads(call("workers", "forget", "lab", "--json").out)
    assert told == {"worker": "lab", **done}


def test_a_refusal_is_passed_on(fake_daemon: FakeDaemon, call: Call) -> None:
    fake_daemon.answers["DELETE /workers/desk"] = problem(
        "refused", "worker `desk` is connected", "stop it first"
    )
    called = call("workers", "forget", "desk")
    expected = "grass: worker `desk` is connected (stop it first)\n"
    assert (called.code, called.err) == (5, expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["workers", "forget"], "the worker is missing"),
        (["workers", "forget", "a", "b"], "`b` is one word too many"),
        (["workers", "list"], "workers knows no `list` (grass workers forget NAME)"),
    ],
)
def test_a_wrong_call_gets_one_line(
    grass: Grass, words: list[str], message: str
) -> None:
    ran = grass(*words)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_workers_daemon_says_for_whom_it_works(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["GET /overview"] = {
        "daemon": {
            "paused": False,
            "jobs": {"running": 2},
            "output_bytes": 0,
            "broker": {"address": "desk:7500", "link": "connected to desk:7500"},
        },
        "workers": [],
        "queues": [],
        "jobs": [],
    }
    line = "this daemon works for the broker at desk:7500: connected to desk:7500"
    assert call("show").out == f"{line}; 2 jobs run here\n"


def test_a_clock_that_is_wrong_gets_a_warning(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    behind, ahead = {**DESK, "clock_skew_s": -7203.4}, {**DESK, "clock_skew_s": 90.0}
    gone = {**GONE, "clock_skew_s": 90.0}
    fake_daemon.answers["GET /workers"] = {"workers": [behind, ahead, gone, DESK]}
    told = "grass: the clock of worker desk is {} the broker's; set one of them right"
    assert call("workers").err.splitlines() == [
        told.format("2h00m behind"),
        told.format("1m30s ahead of"),
    ]


OWN_FOREIGN, OTHER_FOREIGN = {"attempt": "41.1"}, {"attempt": f"{'f' * 16}.5.1"}
END_FOREIGN = "POST /workers/desk/foreign/end"


def test_all_foreign_attempts_are_ended_after_a_confirmation_with_their_count(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    desk = {**DESK, "foreign": [OWN_FOREIGN, OTHER_FOREIGN]}
    fake_daemon.answers["GET /workers"] = {"workers": [desk, GONE]}
    fake_daemon.answers[END_FOREIGN] = {"jobs": [], "warnings": [], "changed": True}
    refused = call("workers", "end", "desk", "all")
    assert refused.code != 0
    assert refused.err == (
        "grass workers: this would end 1 foreign attempt on desk"
        " (add --yes to do so, `grass workers foreign` to see which)\n"
    )
    assert fake_daemon.bodies(END_FOREIGN) == []
    assert call("workers", "end", "--yes", "desk", "all").code == 0
    assert fake_daemon.bodies(END_FOREIGN) == [{"attempts": ["41.1"]}]


HELD = {"jobs": [7, 8, 9], "warnings": [], "changed": True, "held": [8, 9]}
RELEASED = {"jobs": [8, 9], "warnings": [], "changed": True}


def test_jobs_that_may_still_run_there_are_held(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["DELETE /workers/lab"] = HELD
    forgot = call("workers", "forget", "lab")
    assert forgot.out == "forgot worker lab: 1 job lost, 2 jobs held\n"
    assert forgot.err == (
        "grass: 2 jobs may still run there and will not run again before you say so:"
        " grass release 8-9\n"
    )


def test_jobs_that_may_still_run_there_run_again_if_that_is_insisted_on(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["DELETE /workers/lab"] = HELD
    fake_daemon.answers["POST /jobs/release"] = RELEASED
    forgot = call("workers", "forget", "--even-if-alive", "lab")
    assert forgot == (0, "forgot worker lab: 3 jobs lost\n", "")
    assert fake_daemon.bodies("POST /jobs/release") == [{"select": ["8-9"]}]


@pytest.mark.parametrize(("answer", "sent"), [("y\n", 1), ("\n", 0)])
def test_a_person_is_asked_whether_to_run_them_again(
    fake_daemon: FakeDaemon, surroundings: dict[str, str], answer: str, sent: int
) -> None:
    fake_daemon.answers["DELETE /workers/lab"] = HELD
    fake_daemon.answers["POST /jobs/release"] = RELEASED
    ours, theirs = pty.openpty()
    asking = subprocess.Popen(
        [sys.executable, "-m", "grass", "workers", "forget", "lab"],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        env=surroundings,
    )
    os.close(theirs)
    said = b""
    while not said.endswith(b"[y/N] "):
        said += os.read(ours, 1000)
    assert b"2 jobs with --retry-lost may still run on lab." in said
    os.write(ours, answer.encode())
    printed, _ = asking.communicate()
    os.close(ours)
    lost = "3 jobs lost" if sent else "1 job lost, 2 jobs held"
    assert printed == f"forgot worker lab: {lost}\n"
    assert len(fake_daemon.bodies("POST /jobs/release")) == sent
