"""Which broker a command speaks to, and what it says of one that it cannot reach."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from grass import __version__
from grass.cli.main import COMMANDS, command
from grass.config import home
from grass.errors import UsageError

from .conftest import Call, Grass
from .documents import job
from .fake_broker import FakeBroker
from .fake_daemon import DONE, FakeDaemon, problem

CHANGED = {"jobs": [], "warnings": [], "changed": True}
OVERVIEW = {
    "daemon": {"jobs": {}, "paused": False, "output_bytes": 0, "last_event": 4},
    "workers": [],
    "queues": [],
    "jobs": [],
}
SENT = {"first": 7, "last": 7, "hint": ""}
ENDED = job(id=7)
ANSWERS: dict[str, Any] = {
    "GET /overview": OVERVIEW,
    "GET /jobs/7": ENDED,
    "GET /jobs/7?usage=1": ENDED,
    "GET /jobs/7/usage": {"job": 7, "attempt": 1, "points": []},
    "GET /jobs/7/explain": {"id": 7, "state": "queued", "why": "no gpu"},
    "GET /jobs/7/output": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n",
    "GET /jobs/7/output?follow=1&attempt=1": b"HTTP/1.1 200 OK\r\n\r\n",
    "GET /events?limit=1000&after=0": {"events": [], "next": None},
    "GET /queues/q": {"name": "q", "prefix": ["echo"], "paused": False},
    "GET /workers": {"workers": []},
    "POST /jobs": SENT,
    "POST /jobs/wait": {"jobs": [ENDED]},
    "POST /jobs/prune": {"jobs": 0, "output_bytes": 0},
    "POST /jobs/remove": {"jobs": 1, "output_bytes": 0},
    "POST /pause": CHANGED,
    "POST /resume": CHANGED,
    "POST /drain": CHANGED,
    "POST /capacity/add": CHANGED,
    "POST /workers/desk/drain": CHANGED,
    "DELETE /workers/desk": DONE,
    "DELETE /queues/q": CHANGED,
    "PATCH /queues/q": CHANGED,
    "PUT /queues/q": CHANGED,
    **{
        f"POST /jobs/{verb}": DONE
        for verb in (
            *("cancel", "hold", "release", "rerun", "edit", "suspend", "continue"),
            "signal",
        )
    },
}
TO_A_BROKER = (
    *("enqueue -- true", "enqueue q x", "run -- true", "show", "show 7", "explain 7"),
    *(
        "logs 7",
        "usage 7",
        "events",
        "wait 7",
        "cancel 7 --no-wait",
        "rerun 7",
        "hold 7",
    ),
    *("edit 7 --priority 5", "release 7", "suspend 7", "continue 7", "remove 7"),
    "signal USR1 7",
    *("prune --older 1d --yes", "pause", "resume", "resume q", "drain desk"),
    *("drain gpu:0 --worker desk", "resume gpu:0 --worker desk", "workers"),
    *("workers forget desk", "resume --worker desk"),
)
TO_THIS_MACHINE = (
    *("create-queue q", "edit-queue q --max-fails 1", "delete-queue q"),
    *("capacity", "capacity add {a:1}", "drain gpu:0", "resume gpu:0"),
)


@pytest.mark.parametrize("words", TO_A_BROKER)
def test_a_command_goes_to_the_broker_that_it_is_given(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call, words: str
) -> None:
    fake_broker.joined_by(home())
    fake_broker.answers.update(ANSWERS)
    name, *rest = words.split()
    called = call(name, "--broker", str(fake_broker.address), *rest)
    assert called.code == 0, called.err
    assert fake_broker.asked
    assert set(fake_broker.tokens) == {"laptop.secret"}
    assert fake_daemon.asked == []


@pytest.mark.parametrize("words", TO_A_BROKER)
def test_a_command_goes_to_the_joined_broker(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call, words: str
) -> None:
    fake_broker.joined_by(home())
    fake_broker.answers.update(ANSWERS)
    called = call(*words.split())
    assert called.code == 0, called.err
    assert fake_broker.asked
    assert fake_daemon.asked == []


@pytest.mark.parametrize("words", TO_A_BROKER)
def test_a_command_stays_here_when_told_so(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call, words: str
) -> None:
    fake_broker.joined_by(home())
    fake_daemon.answers.update(ANSWERS)
    name, *rest = words.split()
    called = call(name, "--broker=local", *rest)
    assert called.code == 0, called.err
    assert fake_daemon.asked
    assert fake_broker.connections == 0


@pytest.mark.parametrize("words", TO_THIS_MACHINE)
def test_what_concerns_this_machine_goes_to_its_own_daemon(
    fake_daemon: FakeDaemon,
    fake_broker: FakeBroker,
    call: Call,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_broker.joined_by(home())
    monkeypatch.setenv("GRASS_BROKER", str(fake_broker.address))
    fake_daemon.answers.update(ANSWERS)
    called = call(*words.split())
    assert called.code == 0, called.err
    assert fake_daemon.asked
    assert fake_broker.connections == 0


@pytest.mark.parametrize("role", ["submit", "read"])
def test_a_queue_that_commands_do_not_reach_is_said_to_be_local(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call, role: str
) -> None:
    fake_daemon.answers.update(ANSWERS)
    assert call("create-queue", "q").err == ""
    fake_broker.joined_by(home(), role=role)
    place = fake_broker.address
    told = f"q is on this machine only; commands go to the broker at {place}"
    said = (0, "created queue q\n", f"grass: queue {told}\n")
    assert call("create-queue", "q") == said
    works = {"address": str(place), "link": "connected", "settled": True}
    daemon = {"daemon": {"pid": 1, "jobs": {}, "broker": works}}
    fake_daemon.answers["GET /overview"] = daemon
    assert call("create-queue", "q").err == ""


@pytest.mark.parametrize(
    ("route", "words"),
    [
        ("PATCH /queues/q", ["edit-queue", "q", "--max-running", "2"]),
        ("DELETE /queues/q", ["delete-queue", "q"]),
    ],
)
def test_a_queue_of_another_machine_is_not_changed_from_here(
    fake_daemon: FakeDaemon,
    fake_broker: FakeBroker,
    call: Call,
    route: str,
    words: list[str],
) -> None:
    fake_daemon.answers.update(ANSWERS)
    fake_daemon.answers[route] = problem("not-found", "there is no queue `q`")
    assert call(*words).err == "grass: there is no queue `q`\n"
    fake_broker.joined_by(home(), role="submit")
    assert call(*words).err == (
        "grass: there is no queue `q` on this machine; commands go to the"
        f" broker at {fake_broker.address} (a queue is changed on the machines that"
        " give it units)\n"
    )


def test_every_command_that_speaks_to_a_broker_has_the_option() -> None:
    local = {
        *("config", "create-queue", "edit-queue", "delete-queue", "capacity", "start"),
        *("stop", "restart", "daemon", "completion", "join", "leave"),
        *("backup", "restore", "store"),
    }
    with_option = {
        name
        for name in COMMANDS
        if any(option.key == "broker" for option in command(name).options)
    }
    assert with_option == set(COMMANDS) - local


def test_a_queue_is_looked_up_at_the_broker_that_comes_before_it(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    fake_broker.joined_by(home())
    fake_broker.answers.update(ANSWERS)
    place = str(fake_broker.address)
    assert call("enqueue", "--broker", place, "q", "--broker", "local").out == "7\n"
    [body] = fake_broker.bodies("POST /jobs")
    assert body["jobs"] == [{"command": ["--broker", "local"]}]
    fake_daemon.answers["GET /queues/q"] = {"name": "q", "prefix": [], "paused": False}
    late = call("enqueue", "--broker", "local", "q", "--broker", place, "--", "true")
    assert (late.code, late.out) == (2, "")
    assert "--broker comes too late (write it before the queue's name)" in late.err


def test_paths_are_not_looked_for_here_when_the_job_runs_elsewhere(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call, tmp_path: Path
) -> None:
    fake_broker.joined_by(home())
    fake_broker.answers.update(ANSWERS)
    file = tmp_path / "jobs"
    file.write_text('{"command": "true", "cwd": "/no/such/x"}\n')
    words = ["--cwd", "/no/such", "--output", "/"]
    assert call("enqueue", *words, "--", "true").code == 0
    assert call("enqueue", "--from", str(file)).code == 0
    assert call("edit", "7", "--cwd", "/no/such").code == 0
    first, second = fake_broker.bodies("POST /jobs")
    assert first["defaults"] == {"cwd": "/no/such", "output": "/"}
    assert second["jobs"][0]["cwd"] == "/no/such/x"
    assert "environment" not in first
    own: dict[str, Any] = {"id": "w1", "name": "desk", "address": None, "labels": []}
    fake_daemon.answers["GET /overview"] = {"workers": [own], "queues": []}
    for local in (["--cwd", "/no/such"], ["--output", "/"], ["--from", str(file)]):
        command = [] if "--from" in local else ["--", "true"]
        assert call("enqueue", "--broker", "local", *local, *command).code == 2
    assert call("edit", "--broker", "local", "7", "--cwd", "/no/such").code == 2
    assert {asked for asked, _ in fake_daemon.asked} == {"GET /overview"}


def test_worker_and_labels_become_fields_of_a_job(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["POST /jobs"] = SENT
    words = ["--worker", "desk", "--label", "a100", "--label", "big,fast"]
    assert call("enqueue", *words, "--", "true").code == 0
    [body] = fake_daemon.bodies("POST /jobs")
    assert body["defaults"] == {"worker": "desk", "labels": ["a100", "big", "fast"]}


@pytest.mark.parametrize(
    "words", [["show"], ["enqueue", "--", "true"], ["cancel", "7"]]
)
def test_a_broker_out_of_reach_is_one_line_and_exit_code_3(
    grass: Grass, words: list[str]
) -> None:
    ran = grass(words[0], "--broker", "127.0.0.1:1", *words[1:])
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr == (
        "grass: the broker at 127.0.0.1:1 cannot be reached: connection refused (is "
        "its daemon running there, and is the port open to this machine?)\n"
    )


def test_a_broker_that_was_not_joined_is_one_line_and_exit_code_3(
    fake_broker: FakeBroker, call: Call
) -> None:
    called = call("show", "--broker", str(fake_broker.address))
    assert called.code == 3
    assert f"proves the key {fake_broker.pin}, which this machine has" in called.err
    assert called.err.count("\n") == 1


def test_tokens_that_others_may_read_stop_every_command_but_local_ones(
    fake_daemon: FakeDaemon, fake_broker: FakeBroker, call: Call
) -> None:
    fake_broker.joined_by(home())
    os.chmod(home().brokers, 0o644)
    fake_daemon.answers.update(ANSWERS)
    refused = call("show")
    assert refused.code == 5
    assert "chmod 600" in refused.err
    assert "secret" not in refused.err
    assert call("show", "--broker", "local").code == 0


def test_a_wrong_address_is_one_line_about_the_option(grass: Grass) -> None:
    ran = grass("show", "--broker", "a b")
    assert ran.returncode == UsageError.exit_code
    assert ran.stderr.startswith("grass show: --broker: 'a b' is not an address (")
    ran = grass("show", GRASS_BROKER="x:99999")
    assert ran.stderr.startswith("grass show: GRASS_BROKER: ")


def test_a_broker_of_another_version_is_mentioned(
    fake_broker: FakeBroker, call: Call
) -> None:
    fake_broker.joined_by(home())
    body = json.dumps({"tokens": []}).encode()
    head = b"HTTP/1.1 200 OK\r\nGrass-Version: 9.9\r\nContent-Length: %d\r\n\r\n%s"
    fake_broker.answers["GET /tokens"] = head % (len(body), body)
    assert call("token", "list").err == (
        f"grass: the broker at {fake_broker.address} is 9.9, this command"
        f" {__version__} (give both machines the same version)\n"
    )


def test_a_worker_is_resumed_where_no_queue_has_its_name(
    fake_daemon: FakeDaemon, call: Call
) -> None:
    fake_daemon.answers["POST /resume"] = problem(
        "not-found", "there is no queue `desk`"
    )
    fake_daemon.answers["POST /workers/desk/drain"] = CHANGED
    assert call("resume", "desk").out == "worker desk is in use again\n"
    assert fake_daemon.bodies("POST /workers/desk/drain") == [{"on": False}]
    missing = call("resume", "lab")
    assert missing.code == 4
    assert "there is no queue or worker `lab`" in missing.err
