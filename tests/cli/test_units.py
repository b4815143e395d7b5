"""Queues and units: pause, resume, drain, capacity, create-queue, edit-queue, prune."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from .conftest import Call, Grass
from .fake_daemon import FakeDaemon, problem

CHANGED = {"jobs": [], "warnings": [], "changed": True}
UNCHANGED = {**CHANGED, "changed": False}
WORKER = {
    "id": "w",
    "name": "desk",
    "connected": True,
    "capacity": {"gpu": {"0": 1, "4": 1}},
    "free": {"gpu": {"0": 0.5}},
    "origin": {"gpu": {"0": "found", "4": "declared"}},
    "drained": {"gpu": ["4"]},
}


@pytest.mark.parametrize(
    ("words", "route", "body", "said", "unchanged"),
    [
        (
            ["pause", "q1"],
            "POST /pause",
            {"queue": "q1"},
            "queue q1 is paused",
            "queue q1 was paused already",
        ),
        (
            ["resume"],
            "POST /resume",
            {"queue": None, "unit": None, "worker": None},
            "grass is running again",
            "grass was not paused",
        ),
        (
            ["resume", "q1"],
            "POST /resume",
            {"queue": "q1", "unit": None, "worker": None},
            "queue q1 is running again",
            "queue q1 was not paused",
        ),
        (
            ["resume", "gpu:2", "--worker", "desk"],
            "POST /resume",
            {"queue": None, "unit": "gpu:2", "worker": "desk"},
            "gpu:2 of worker desk is in use again",
            "gpu:2 of worker desk was not drained",
        ),
        (
            ["drain", "gpu:2"],
            "POST /drain",
            {"unit": "gpu:2", "worker": None},
            "gpu:2 is drained: nothing new starts there",
            "gpu:2 was drained already",
        ),
        (
            ["drain", "desk"],
            "POST /workers/desk/drain",
            {"on": True},
            "worker desk is drained: nothing new starts there",
            "worker desk was drained already",
        ),
        (
            ["resume", "--worker", "desk"],
            "POST /workers/desk/drain",
            {"on": False},
            "worker desk is in use again",
            "worker desk was not drained",
        ),
        (
            ["capacity", "add", "{gpu:{'4':1}}"],
            "POST /capacity/add",
            {"capacity": "{gpu:{'4':1}}", "worker": None},
            "added {gpu:{'4':1}}",
            "{gpu:{'4':1}} was there already",
        ),
        (
            ["capacity", "--worker", "desk", "remove", "gpu:4"],
            "POST /capacity/remove",
            {"unit": "gpu:4", "worker": "desk"},
            "removed gpu:4 of worker desk",
            "gpu:4 of worker desk is being removed already",
        ),
        (
            ["edit-queue", "q1", "--max-running", "2"],
            "PATCH /queues/q1",
            {"max_running": 2},
            "changed queue q1",
            "queue q1 is like that already",
        ),
    ],
)
def test_a_verb_says_what_it_changed(
    fake_daemon: FakeDaemon,
    call: Call,
    words: list[str],
    route: str,
    body: dict[str, Any],
    said: str,
    unchanged: str,
) -> None:
    fake_daemon.answers[route] = [CHANGED, UNCHANGED, CHANGED]
    assert call(*words) == (0, said + "\n", "")
    assert call(*words) == (0, unchanged + "\n", "")
    assert json.loads(call(*words, "--json").out)["changed"] is True
    assert fake_daemon.asked == [(route, body)] * 3


@pytest.mark.parametrize(
    "words",
    [
        ["drain", "gpu:2"],
        ["capacity", "add", "{gpu:4}"],
        ["capacity", "remove", "gpu:2"],
        ["edit-queue", "q", "--max-fails", "1"],
    ],
)
def test_warnings_go_to_stderr(
    fake_daemon: FakeDaemon, call: Call, words: list[str]
) -> None:
    for route in (
        *("POST /drain", "POST /capacity/add", "POST /capacity/remove"),
        "PATCH /queues/q",
    ):
        fake_daemon.answers[route] = {**CHANGED, "warnings": ["2 jobs hold it"]}
    assert call(*words).err == "grass: 2 jobs hold it\n"


def test_capacity_shows_units(fake_daemon: FakeDaemon, call: Call) -> None:
    fake_daemon.answers["GET /workers"] = {"workers": [WORKER]}
    for words in (["capacity"], ["capacity", "show", "--worker", "desk"]):
        shown = call(*words)
        assert shown.code == 0
        assert "gpu   found     0: 0.5/1\n" in shown.out
        assert "declared  4: 0/1 drained\n" in shown.out
    told = json.loads(call("capacity", "show", "--json").out)
    assert told == {"workers": [WORKER]}
    missing = call("capacity", "--worker", "lab")
    assert missing.code == 4
    assert "there is no worker `lab` (`grass capacity` lists all)" in missing.err


@pytest.mark.parametrize(
    ("options", "body"),
    [
        (["--capacity", "{gpu:2}"], {"capacity": "{gpu:2}"}),
        (["--env", "A=1"], {"env": {"A": "1"}}),
        (["--cwd", "/"], {"directory": "/"}),
        (["--default-require", "{gpu:1}"], {"default_require": "{gpu:1}"}),
        (["--default-require", "none"], {"default_require": None}),
        (["--max-running", "none"], {"max_running": None}),
        (["--max-fails", "3"], {"max_fails": 3}),
        (["--max-fails", "none"], {"max_fails": None}),
        (["lpr", "--json"], {"command": ["lpr", "--json"], "directory": os.getcwd()}),
        (["--cwd", "/", "--", "-x"], {"command": ["-x"], "directory": "/"}),
    ],
)
def test_a_queue_is_changed_where_something_is_named(
    fake_daemon: FakeDaemon, call: Call, options: list[str], body: dict[str, Any]
) -> None:
    fake_daemon.answers["PATCH /queues/q1"] = CHANGED
    called = call("edit-queue", "q1", *options)
    assert called.code == 0, called.err
    assert fake_daemon.bodies("PATCH /queues/q1") == [body]


def test_the_capacity_of_a_queue_may_come_from_a_file(
    fake_daemon: FakeDaemon, call: Call, tmp_path: Path
) -> None:
    file = tmp_path / "c.json5"
    file.write_text("{gpu:2}")
    fake_daemon.answers["PATCH /queues/q1"] = CHANGED
    fake_daemon.answers["PUT /queues/q2"] = CHANGED
    assert call("edit-queue", "q1", "--file", str(file)).code == 0
    assert fake_daemon.bodies("PATCH /queues/q1") == [{"capacity": "{gpu:2}"}]
    created = call("create-queue", "q2", "--file", str(file), "--max-fails", "3")
    assert created.out == "created queue q2\n"
    [body] = fake_daemon.bodies("PUT /queues/q2")
    assert (body["capacity"], body["max_fails"]) == ("{gpu:2}", 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["drain"], "the unit or worker is missing"),
        (["drain", "desk", "--worker", "w"], "--worker goes with a unit (grass drain"),
        (["drain", "gpu:"], "`gpu:` is not a unit"),
        (["drain", "gpu:1", "gpu:2"], "`gpu:2` is one word too many"),
        (["resume", ":2"], "`:2` is not a unit"),
        (["resume", "q1", "--worker", "w"], "--worker goes with a unit (grass resume"),
        (["capacity", "grow"], "capacity knows no `grow` (it is show, add or remove)"),
        (["capacity", "add"], "the capacity is missing"),
        (["capacity", "remove", "gpu"], "`gpu` is not a unit"),
        (["capacity", "show", "x"], "`x` is one word too many"),
        (["edit-queue"], "the queue's name is missing"),
        (["edit-queue", "q1"], "nothing to change was given (grass edit-queue q1 --ma"),
        (["edit-queue", "q1", "--max-running", "x"], "--max-running must be a whole"),
        (["edit-queue", "q1", "--cwd", "/no/such"], "there is no directory /no/such"),
        (["create-queue", "q1", "--max-fails", "x"], "--max-fails must be a whole"),
    ],
)
def test_a_wrong_call_gets_one_line(
    grass: Grass, words: list[str], message: str
) -> None:
    ran = grass(*words)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert ran.stdout == ""


@pytest.mark.parametrize(
    ("keep", "older_s"),
    [(None, 30 * 86400), ("7d", 7 * 86400), ("1h30m", 5400), (90, 90)],
)
def test_prune_keeps_what_the_configuration_keeps(
    fake_daemon: FakeDaemon, call: Call, keep: str | int | None, older_s: float
) -> None:
    settings = [
        {"name": "defaults.grace", "value": "15s", "origin": "default"},
        {"name": "retention.keep", "value": keep, "origin": "config.toml"},
    ]
    fake_daemon.answers["GET /config"] = {"settings": settings}
    fake_daemon.answers["POST /jobs/prune"] = {"jobs": 2, "output_bytes": 3}
    assert call("prune", "--yes").out == "forgot 2 jobs with 3 B of output\n"
    asked = {"older_s": older_s, "dry_run": False}
    assert fake_daemon.bodies("POST /jobs/prune") == [asked]
    assert call("prune").code == 2
    assert fake_daemon.bodies("POST /jobs/prune") == [asked, {**asked, "dry_run": True}]
    call("prune", "--older", "1m", "--yes")
    assert fake_daemon.bodies("POST /jobs/prune")[-1]["older_s"] == 60


def test_a_refusal_of_the_daemon_is_passed_on(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["POST /drain"] = problem(
        "not-found", "there is no unit gpu:9", "see `grass capacity`"
    )
    called = call("drain", "gpu:9")
    expected = "grass: there is no unit gpu:9 (see `grass capacity`)\n"
    assert (called.code, called.err) == (4, expected)


def test_a_queue_that_does_not_exist_is_pointed_out_when_it_is_set(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["GET /config"] = {"settings": []}
    fake_daemon.answers["GET /queues/night"] = {"name": "night"}
    assert call("config", "set", "defaults.queue", "night").err == ""
    ran = call("config", "set", "defaults.queue", "day")
    assert (ran.code, "defaults.queue is day now" in ran.out) == (0, True)
    assert ran.err == (
        "grass: there is no queue `day` yet (`grass create-queue day`)\n"
    )
