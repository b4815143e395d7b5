"""Queues, units and settings while jobs run."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message
from tests.support.calling import Answer, Api, play

from grass.api.app import VERSION_HEADER
from grass.config import API_PREFIX
from grass.link.messages import Start


async def patch(api: Api, path: str, body: object) -> Answer:
    return await api.send("PATCH", path, json.dumps(body).encode())


async def shown(api: Api, queue: str) -> dict[str, Any]:
    document = (await api.get(f"/overview?queue={queue}")).document
    (found,) = document["queues"]
    assert isinstance(found, dict)
    return found


async def worker_of(api: Api) -> dict[str, Any]:
    (found,) = (await api.get("/overview")).document["workers"]
    assert isinstance(found, dict)
    return found


async def enqueue(api: Api, **fields: Any) -> None:
    answer = await api.post("/jobs", {"jobs": [{"command": ["x"], **fields}]})
    assert answer.status == 200, answer.document


def test_a_queue_is_changed_where_a_field_is_given(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        created = {"capacity": "{cpu:1}", "max_running": 2, "max_fails": 5}
        await api.put("/queues/q1", created)
        queue = await shown(api, "q1")
        assert (queue["max_fails"], queue["fails"]) == (5, 0)
        assert queue["paused_reason"] is None
        changes = {"command": ["python"], "max_running": None, "max_fails": 3}
        assert (await patch(api, "/queues/q1", changes)).status == 200
        queue = await shown(api, "q1")
        assert (queue["max_running"], queue["max_fails"]) == (None, 3)
        assert queue["views"]["desk"] == {
            "capacity": {"cpu": {"0": 1}},
            "command": ["python"],
            "cwd": None,
        }
        await patch(api, "/queues/q1", {"default_require": "{cpu:0.5}"})
        assert (await shown(api, "q1"))["default_request"] == {"cpu": 0.5}
        await patch(api, "/queues/q1", {"default_require": None})
        assert (await shown(api, "q1"))["default_request"] is None

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({}, 400, "nothing to change was given"),
        ({"max_running": 0}, 400, "--max-running must be at least 1"),
        ({"max_fails": 0}, 400, "--max-fails must be at least 1"),
        ({"capacity": "{cpu:-1}"}, 400, "cpu must be a whole number of units"),
        ({"capacity": None}, 400, "the request is not understood"),
        ({"capacity": "{cpu:[9]}"}, 400, "queue `q1` wants 9 of cpu 0, which has 1"),
        ({"default_require": "{"}, 400, "request, line 1"),
        ({"env": {"": "1"}}, 400, "cannot be an environment variable"),
        ({"directory": "here"}, 400, "--cwd `here` is not an absolute path"),
        ({"paused": True}, 400, "unknown field `paused`"),
    ],
)
def test_a_bad_change_leaves_a_queue_alone(
    tmp_path: Path, body: dict[str, Any], status: int, told: str
) -> None:
    async def story(api: Api) -> None:
        await api.put("/queues/q1", {"capacity": "{cpu:1}"})
        before = await shown(api, "q1")
        answer = await patch(api, "/queues/q1", body)
        assert (answer.status, told in answer.document["detail"]) == (status, True)
        assert await shown(api, "q1") == before
        missing = await patch(api, "/queues/q2", {"max_fails": 1})
        assert missing.status == 404

    play(tmp_path, story)


def test_a_change_of_a_queue_says_what_creating_it_says(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        body = {"capacity": "{gpu:2}", "directory": "/data"}
        said = [
            "queue `q1` has no command, so the directory /data is left out",
            "declared, not found: 2 gpu (0 found)",
        ]
        assert (await api.put("/queues/q1", body)).document["warnings"] == said
        await api.put("/queues/q2", {"capacity": "{slot:1}"})
        body = {"capacity": "{gpu:{'7':1}}", "directory": "/data"}
        told = (await patch(api, "/queues/q2", body)).document["warnings"]
        assert told == [
            said[0].replace("q1", "q2"),
            "declared, not found: 1 gpu (0 found)",
        ]
        assert (await shown(api, "q2"))["views"]["desk"]["cwd"] is None

    play(tmp_path, story)


def test_units_come_and_go(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        body = {"capacity": "{gpu:{'4':1}}"}
        assert (await api.post("/capacity/add", body)).document["changed"]
        worker = await worker_of(api)
        assert worker["capacity"]["gpu"] == {"4": 1}
        assert worker["origin"]["gpu"] == {"4": "added"}
        await enqueue(api, require={"gpu": 1})
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        assert start.allocation == {"gpu": {"4": 10_000}}
        removed = await api.post(
            "/capacity/remove", {"unit": "gpu:4", "worker": "desk"}
        )
        assert removed.status == 200
        again = await api.post(
            "/jobs", {"jobs": [{"command": "x", "require": "{gpu:1}"}]}
        )
        assert again.document["code"] == "never-fits"

    play(tmp_path, story)


def test_a_drained_unit_takes_nothing_new(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        assert (await api.post("/drain", {"unit": "cpu:0"})).document["changed"]
        assert not (await api.post("/drain", {"unit": "cpu:0"})).document["changed"]
        assert (await worker_of(api))["drained"] == {"cpu": ["0"]}
        await enqueue(api)
        first = await api.worker.hears(Start)
        assert isinstance(first, Start)
        assert list(first.allocation["cpu"]) == ["1"]
        await enqueue(api)
        told = (await api.get("/jobs/2/explain")).document
        assert told["constraints"][0]["have"] == "0"
        await api.post("/resume", {"unit": "cpu:0"})
        second = await api.worker.hears(Start)
        assert isinstance(second, Start)
        assert list(second.allocation["cpu"]) == ["0"]
        assert (await worker_of(api))["drained"] == {}

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("path", "body", "status", "told"),
    [
        ("/capacity/add", {}, 400, "missing required field `capacity`"),
        ("/capacity/add", {"capacity": "{}"}, 400, "no units were given"),
        ("/capacity/add", {"capacity": "{gpu:"}, 400, "capacity, line 1"),
        ("/capacity/add", {"capacity": {"cpu": 1}}, 409, "cpu 0 is there already"),
        ("/capacity/add", {"capacity": {"a": 1}, "worker": "w"}, 404, "no worker `w`"),
        ("/capacity/remove", {"unit": "gpu"}, 400, "`gpu` names no unit"),
        ("/capacity/remove", {"unit": ":4"}, 400, "`:4` names no unit"),
        ("/capacity/remove", {"unit": "gpu:4"}, 404, "there is no gpu 4"),
        ("/capacity/remove", {"unit": "cpu:0"}, 409, "was found on the machine"),
        ("/drain", {"unit": "cpu:9"}, 404, "there is no cpu 9"),
        ("/drain", {"unit": "cpu:0", "worker": "w"}, 404, "there is no worker `w`"),
        ("/resume", {"unit": "cpu:9"}, 404, "there is no cpu 9"),
        ("/resume", {"unit": "cpu:0", "queue": "q"}, 400, "a queue and a unit"),
        ("/resume", {"worker": "desk"}, 400, "a worker without a unit"),
        ("/resume", {"queue": "q"}, 404, "there is no queue `q`"),
    ],
)
def test_bad_words_about_units_change_nothing(
    tmp_path: Path, path: str, body: dict[str, Any], status: int, told: str
) -> None:
    async def story(api: Api) -> None:
        before = await worker_of(api)
        answer = await api.post(path, body)
        assert (answer.status, told in answer.document["detail"]) == (status, True)
        assert await worker_of(api) == before

    play(tmp_path, story)


def test_settings_are_told_with_their_origin(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        settings = (await api.get("/config")).document["settings"]
        first = {"name": "defaults.queue", "value": "default", "origin": "default"}
        assert first in settings

    play(tmp_path, story)


def test_replies_name_the_version_to_those_who_are_let_in(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        for path in ("/overview", "/jobs/7", "/nowhere"):
            assert await version_of(api, path) == b"1.2.3"
            assert await version_of(api, path, uid=None) is None

    play(tmp_path, story)


async def version_of(
    api: Api, path: str, uid: int | None = os.geteuid()
) -> bytes | None:
    """Ask for a path and return the version that the reply carries."""
    scope = {
        "type": "http",
        "method": "GET",
        "path": API_PREFIX + path,
        "query_string": b"",
        "headers": [],
        "state": {"uid": uid},
    }
    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def answer(message: Message) -> None:
        sent.append(message)

    await api.app(scope, receive, answer)
    headers: dict[bytes, bytes] = dict(sent[0]["headers"])
    return headers.get(VERSION_HEADER.lower().encode())
