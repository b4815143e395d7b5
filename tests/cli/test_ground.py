"""Paths of a job, looked at on the caller's disk only if it can run nowhere else."""

from typing import Any

import pytest

from .conftest import Call
from .far_end import FarEnd

SENT = {"first": 7, "last": 7, "hint": ""}
DESK: dict[str, Any] = {"id": "w1", "name": "desk", "address": None, "labels": ["ssd"]}
RACK = {"id": "w2", "name": "rack", "address": "10.0.0.2", "labels": ["a100"]}


def played(far_end: FarEnd, *workers: dict[str, Any]) -> None:
    far_end.answers["POST /jobs"] = SENT
    far_end.answers["GET /queues/lab"] = {"name": "lab", "prefix": [], "paused": False}
    there = {"workers": list(workers), "queues": []}
    far_end.answers["GET /overview"] = there
    lab = {"name": "lab", "views": {"rack": {}}}
    far_end.answers["GET /overview?queue=lab"] = {**there, "queues": [lab]}


@pytest.mark.parametrize(
    "path", [["--cwd", "/no/such"], ["--output", "/"], ["--stderr", "/"]]
)
def test_a_path_must_be_right_where_nobody_else_could_run_the_job(
    far_end: FarEnd, call: Call, path: list[str]
) -> None:
    played(far_end, DESK)
    assert call("enqueue", *path, "--", "true").code == 2
    played(far_end, DESK, RACK)
    assert call("enqueue", *path, "--worker", "desk", "--", "true").code == 2
    assert call("enqueue", *path, "--label", "ssd", "--", "true").code == 2
    assert far_end.bodies("POST /jobs") == []


@pytest.mark.parametrize(
    "words",
    [[], ["--worker", "rack"], ["--worker", "w2"], ["--label", "a100"], ["lab"]],
)
def test_a_path_may_be_right_on_another_machine(
    far_end: FarEnd, call: Call, words: list[str]
) -> None:
    played(far_end, DESK, RACK)
    assert call("enqueue", *words, "--cwd", "/no/such", "--", "true").code == 0
    (body,) = far_end.bodies("POST /jobs")
    assert body["defaults"]["cwd"] == "/no/such"


def test_a_broker_without_a_worker_looks_at_nothing(
    far_end: FarEnd, call: Call
) -> None:
    played(far_end, RACK)
    assert call("enqueue", "--cwd", "/no/such", "--", "true").code == 0


def test_nobody_is_asked_about_a_path_that_is_there(
    far_end: FarEnd, call: Call
) -> None:
    played(far_end, DESK)
    assert call("enqueue", "--cwd", "/", "--", "true").code == 0
    assert [route for route, _ in far_end.asked] == ["POST /jobs"]
