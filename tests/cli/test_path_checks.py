"""Paths of a job, checked on the caller's disk only if it can run nowhere else."""

from typing import Any

import pytest

from .conftest import Call
from .fake_daemon import FakeDaemon

SENT = {"first": 7, "last": 7, "hint": ""}
DESK: dict[str, Any] = {"id": "w1", "name": "desk", "address": None, "labels": ["ssd"]}
RACK = {"id": "w2", "name": "rack", "address": "10.0.0.2", "labels": ["a100"]}


def played(fake_daemon: FakeDaemon, *workers: dict[str, Any]) -> None:
    fake_daemon.answers["POST /jobs"] = SENT
    fake_daemon.answers["GET /queues/lab"] = {
        "name": "lab",
        "prefix": [],
        "paused": False,
    }
    there = {"workers": list(workers), "queues": []}
    fake_daemon.answers["GET /overview"] = there
    lab = {"name": "lab", "views": {"rack": {}}}
    fake_daemon.answers["GET /overview?queue=lab"] = {**there, "queues": [lab]}


@pytest.mark.parametrize(
    "path", [["--cwd", "/no/such"], ["--output", "/"], ["--stderr", "/"]]
)
def test_a_path_is_checked_if_only_this_machine_can_run_the_job(
    fake_daemon: FakeDaemon, call: Call, path: list[str]
) -> None:
    played(fake_daemon, DESK)
    assert call("enqueue", *path, "--", "true").code == 2
    played(fake_daemon, DESK, RACK)
    assert call("enqueue", *path, "--worker", "desk", "--", "true").code == 2
    assert call("enqueue", *path, "--label", "ssd", "--", "true").code == 2
    assert fake_daemon.bodies("POST /jobs") == []


@pytest.mark.parametrize(
    "words",
    [[], ["--worker", "rack"], ["--worker", "w2"], ["--label", "a100"], ["lab"]],
)
def test_a_path_may_be_right_on_another_machine(
    fake_daemon: FakeDaemon, call: Call, words: list[str]
) -> None:
    played(fake_daemon, DESK, RACK)
    assert call("enqueue", *words, "--cwd", "/no/such", "--", "true").code == 0
    (body,) = fake_daemon.bodies("POST /jobs")
    assert body["defaults"]["cwd"] == "/no/such"


def test_a_broker_without_a_worker_looks_at_nothing(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    played(fake_daemon, RACK)
    assert call("enqueue", "--cwd", "/no/such", "--", "true").code == 0


def test_the_daemon_is_not_asked_about_a_path_that_exists(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    played(fake_daemon, DESK)
    assert call("enqueue", "--cwd", "/", "--", "true").code == 0
    assert [route for route, _ in fake_daemon.asked] == ["POST /jobs"]
