"""Guests over the API: a process of this machine speaks of itself alone."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.api.farm import joined
from tests.support.building import WORKER
from tests.support.calling import Answer, Api, play

from grass.link.messages import GiveBack, Start, Started
from grass.profiles.guest_calls import start_ticks

OWN = {"pid": os.getpid(), "uid": os.geteuid()}


async def ask(api: Api, path: str, body: dict[str, Any], **caller: int) -> Answer:
    data = json.dumps(body).encode()
    return await api._send("POST", path, data, [], {**OWN, **caller})


def test_process_waits_for_its_units_and_gives_them_back(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        body = {"ticks": start_ticks(), "require": {"cpu": 1}, "name": "fit"}
        entered = (await ask(api, "/guests", body)).document
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        assert start.guest == (os.getpid(), start_ticks())
        waits = await ask(api, f"/guests/{entered['first']}/wait", {"timeout_s": 0})
        assert (waits.document["state"], waits.document["environment"]) == (
            "running",
            {},
        )
        api.worker.link.send(Started(start.attempt, os.getpid(), 1))
        path = f"/guests/{entered['first']}/wait"
        begun = (await ask(api, path, {"timeout_s": 9})).document
        assert begun["environment"]["GRASS_JOB_ID"] == str(entered["first"])
        assert begun["environment"]["GRASS_CPU"] in begun["units"]["cpu"]
        path = f"/guests/{entered['first']}/end"
        assert (await ask(api, path, {"exit_code": 4}, pid=1)).status == 403
        assert (await ask(api, path, {"exit_code": 4})).status == 200
        assert await api.worker.hears(GiveBack) == GiveBack(start.attempt, 4)

    play(tmp_path, story)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, int], str]] = {
    "another start": ({"ticks": 1}, {}, "is not the one that was named"),
    "no process": ({"ticks": 1}, {"pid": 0}, "only a process on the worker's own"),
    "another user": ({"ticks": 1}, {"uid": 0}, "belongs to the user of the daemon"),
    "a command": ({"ticks": 1, "command": "true"}, {}, "unknown field"),
    "too much": (
        {"ticks": start_ticks(), "require": {"cpu": 99}},
        {},
        "cpu: asked 99",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_the_caller_itself_is_refused(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, caller, said = REFUSED[case]
    if caller.get("uid") == os.geteuid():
        monkeypatch.setattr(os, "geteuid", lambda: 1000)

    async def story(api: Api) -> None:
        answer = await ask(api, "/guests", body, **caller)
        assert answer.status >= 400
        assert said in answer.document["detail"], answer.document
        assert not api.broker.state.jobs

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("role", "worker"),
    [("admin", None), ("machine", None), ("operate", "f1"), ("submit", WORKER)],
)
def test_only_the_machine_of_a_worker_names_a_process(
    tmp_path: Path, role: str, worker: str | None
) -> None:
    async def story(api: Api) -> None:
        await joined(api)
        token = await api.new_token(role)
        api.broker.state.tokens[role].worker = worker
        for body in ({"ticks": 1}, {"ticks": 1, "pid": os.getpid()}):
            answer = await api.remote("POST", "/guests", body, token)
            assert answer.document["code"] == "refused"
            assert "worker's own machine" in answer.document["detail"]
        assert not api.broker.state.jobs

    play(tmp_path, story)


def test_guest_of_another_machine_is_placed_there(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        farm, token = await joined(api), await api.new_token("machine")
        api.broker.state.tokens["machine"].worker = "f1"
        body = {"ticks": 99, "pid": 4711, "require": {"cpu": 1}, "name": "fit"}
        entered = (await api.remote("POST", "/guests", body, token)).document
        start = await farm.hears(Start)
        assert isinstance(start, Start)
        assert start.guest == (4711, 99)
        job = (await api.get(f"/jobs/{entered['first']}")).document
        assert (job["owner"], job["guest"]) == ("token:machine", 4711)
        assert not api.app.state.api.guest_tasks

    play(tmp_path, story)


def test_same_pid_on_another_machine_is_another_process(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await joined(api)
        tokens = {}
        for role, worker in (("machine", "f1"), ("admin", WORKER)):
            tokens[worker] = await api.new_token(role)
            api.broker.state.tokens[role].worker = worker
        body = {"ticks": 99, "pid": os.getpid(), "require": {"cpu": 1}}
        entered = await api.remote("POST", "/guests", body, tokens["f1"])
        path = f"/guests/{entered.document['first']}/end"
        assert (await ask(api, path, {})).status == 403
        assert (await ask(api, path, {"pid": os.getpid()})).status == 403
        own = {"pid": os.getpid()}
        assert (await api.remote("POST", path, own, tokens[WORKER])).status == 403
        other = {"pid": os.getpid() + 1}
        assert (await api.remote("POST", path, other, tokens["f1"])).status == 403
        assert (await api.remote("POST", path, own, tokens["f1"])).status == 200

    play(tmp_path, story)


def test_pid_that_a_process_of_this_machine_says_counts_for_nothing(
    tmp_path: Path,
) -> None:
    async def story(api: Api) -> None:
        body = {"ticks": start_ticks(), "pid": 2, "require": {"cpu": 1}}
        await ask(api, "/guests", body)
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        assert start.guest == (os.getpid(), start_ticks())

    play(tmp_path, story)


def test_job_of_another_process_is_not_told(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        job = (await api.post("/jobs", {"jobs": [{"command": ["true"]}]})).document
        answer = await ask(api, f"/guests/{job['first']}/wait", {})
        assert answer.status == 403
        assert (await ask(api, "/guests/x/wait", {})).status == 404
        assert (await ask(api, "/guests/99/wait", {})).status == 404

    play(tmp_path, story)
