"""Guests over the API: a process of this machine speaks of itself alone."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
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


def test_caller_of_another_machine_cannot_be_a_guest(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token("admin")
        answer = await api.remote("POST", "/guests", {"ticks": 1}, token)
        assert answer.status == 409 or answer.document["code"] == "refused"
        assert "worker's own machine" in answer.document["detail"]

    play(tmp_path, story)


def test_job_of_another_process_is_not_told(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        job = (await api.post("/jobs", {"jobs": [{"command": ["true"]}]})).document
        answer = await ask(api, f"/guests/{job['first']}/wait", {})
        assert answer.status == 403
        assert (await ask(api, "/guests/x/wait", {})).status == 404
        assert (await ask(api, "/guests/99/wait", {})).status == 404

    play(tmp_path, story)
