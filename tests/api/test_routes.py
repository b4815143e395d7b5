"""Every route of the API, with a real broker behind it."""

import asyncio
from pathlib import Path
from typing import Any

from tests.support.calling import Answer, Api, play

from grass.api.app import ENDPOINTS
from grass.config import API_PREFIX
from grass.link.messages import (
    CloseOutput,
    Exited,
    OutputData,
    ReadOutput,
    RemoveOutput,
    Start,
    Started,
    Stop,
)
from grass.model.jobs.spec import SHOWN_AS_STORED, Spec

ONE: dict[str, Any] = {"jobs": [{"command": ["true"]}]}


async def start_one(api: Api, **body: Any) -> str:
    """Enqueue a job, let it start, and return its attempt."""
    await api.post("/jobs", {**ONE, **body})
    start = await api.worker.hears(Start)
    assert isinstance(start, Start)
    message = Started(start.attempt, 42, 1_000_000, "/out/1.log", 0)
    api.worker.link.send(message)
    return start.attempt


async def end(api: Api, attempt: str, job: int, **how: Any) -> None:
    api.worker.link.send(Exited(attempt, 2_000_000, **{"exit_code": 0, **how}))
    await api.broker.ended([job])


def test_every_endpoint_stands_in_the_openapi_document(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        document = (await api.get("/openapi.json")).document
        for one in ENDPOINTS:
            operation = document["paths"][API_PREFIX + one.path][one.method.lower()]
            assert operation["summary"]
            if one.body is not None:
                content = operation["requestBody"]["content"]["application/json"]
                name = content["schema"]["$ref"].rpartition("/")[2]
                assert name in document["components"]["schemas"]
        described = sum(len(methods) for methods in document["paths"].values())
        assert described == len(ENDPOINTS)

    play(tmp_path, story)


def test_a_job_is_enqueued_runs_and_is_read_back(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        answer = await api.post("/jobs", ONE)
        assert answer.document == {"first": 1, "last": 1, "hint": ""}
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        job = (await api.get("/jobs/1")).document
        assert (job["state"], job["flags"]) == ("running", ["starting"])
        await end(api, start.attempt, 1, exit_code=3)
        job = (await api.get("/jobs/last")).document
        assert (job["state"], job["exit_code"]) == ("failed", 3)
        assert job["created_at"] <= job["started_at"] <= job["finished_at"]
        assert job["attempts"][0]["number"] == 1

    play(tmp_path, story)


def test_defaults_are_shared_and_each_job_may_differ(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        body = {
            "defaults": {"env": {"A": "1"}, "require": "{cpu:0.5}", "project": "p"},
            "jobs": [
                {"command": "echo a; echo b", "name": "first"},
                {"command": ["x"], "env": {"B": "2"}, "require": {"cpu": 2}},
            ],
            "directory": "/home",
        }
        assert (await api.post("/jobs", body)).document["last"] == 2
        first = (await api.get("/jobs/1")).document
        second = (await api.get("/jobs/2")).document
        assert (first["name"], first["shell"]) == ("first", True)
        assert (first["request"], second["request"]) == ({"cpu": 0.5}, {"cpu": 2})
        assert first["project"] == second["project"] == "p"
        assert second["cwd"] == "/home"
        assert second["reason"]

    play(tmp_path, story)


def test_each_field_of_a_spec_is_either_shown_or_hidden() -> None:
    shown_otherwise = {
        *("request", "prefix", "cwd", "queue_cwd", "after", "begin_at"),
        *("worker", "output", "stderr", "auto_vram", "job_type", "task"),
    }
    hidden = {"env", "base_env", "umask", "raw", "pin", "max_output", "at_most"}
    hidden |= {"window", "verbatim", "threads", "guest", "short_of_memory", "origin"}
    hidden |= {"sbatch"}
    shown = {*SHOWN_AS_STORED, *shown_otherwise}
    assert not shown & hidden
    assert shown | hidden == set(Spec.__struct_fields__)


def test_pages_continue_where_they_ended(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await api.post("/jobs", {"jobs": [{"command": ["x"]}] * 5})
        page = (await api.get("/jobs?limit=2")).document
        assert [job["id"] for job in page["jobs"]] == [5, 4]
        page = (await api.get(f"/jobs?limit=2&before={page['next']}")).document
        assert [job["id"] for job in page["jobs"]] == [3, 2]
        page = (await api.get(f"/jobs?limit=2&before={page['next']}")).document
        assert [job["id"] for job in page["jobs"]] == [1]
        assert page["next"] is None
        page = (await api.get("/jobs?state=unfinished&order=oldest&after=4")).document
        assert [job["id"] for job in page["jobs"]] == [5]
        assert (await api.get("/jobs?state=ended")).document["jobs"] == []

    play(tmp_path, story)


def test_cancelling_is_answered_at_once_and_waiting_when_it_is_over(
    tmp_path: Path,
) -> None:
    async def story(api: Api) -> None:
        attempt = await start_one(api)
        body = {"select": ["1"], "grace_s": 0.5, "signal": 2}
        assert (await api.post("/jobs/cancel", body)).document["jobs"] == [1]
        assert await api.worker.hears(Stop) == Stop(attempt, 0.5, 2)
        assert "stopping" in (await api.get("/jobs/1")).document["flags"]
        waiting = asyncio.ensure_future(api.post("/jobs/wait", {"select": ["all"]}))
        late = await api.post("/jobs/wait", {"select": ["1"], "timeout_s": 0.01})
        assert (late.status, late.document["code"]) == (408, "timed-out")
        assert not waiting.done()
        await end(api, attempt, 1, exit_code=None, signal=2)
        (job,) = (await waiting).document["jobs"]
        assert (job["state"], job["signal"]) == ("cancelled", 2)

    play(tmp_path, story)


def test_queues_are_created_read_paused_and_deleted(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        body = {"capacity": "{cpu:1}", "command": ["python"], "max_running": 2}
        assert (await api.put("/queues/q1", body)).document["changed"]
        assert not (await api.put("/queues/q1", body)).document["changed"]
        await api.post("/pause", {"queue": "q1"})
        read = (await api.get("/queues/q1")).document
        assert read == {"name": "q1", "prefix": ["python"], "paused": True}
        await api.post("/resume", {"queue": "q1"})
        shown = (await api.get("/overview?queue=q1")).document
        assert [queue["name"] for queue in shown["queues"]] == ["q1"]
        assert shown["queues"][0]["max_running"] == 2
        await api.send("DELETE", "/queues/q1", b"")
        assert (await api.get("/queues/q1")).status == 404

    play(tmp_path, story)


def test_the_overview_shows_daemon_workers_queues_and_jobs(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await start_one(api)
        shown = (await api.get("/overview")).document
        assert shown["daemon"]["version"] == "1.2.3"
        assert shown["daemon"]["jobs"]["running"] == 1
        (worker,) = shown["workers"]
        assert worker["free"] == {"cpu": {"0": 0, "1": 1}}
        assert worker["origin"]["cpu"]["0"] == "found"
        assert [job["id"] for job in shown["jobs"]] == [1]

    play(tmp_path, story)


def test_output_comes_from_the_worker_piece_by_piece(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        attempt = await start_one(api)
        await end(api, attempt, 1, output_bytes=5)
        reading = asyncio.ensure_future(api.get("/jobs/1/output"))
        for data in (b"abc", b"def", b""):
            question = await api.worker.hears(ReadOutput)
            assert isinstance(question, ReadOutput)
            assert question.path == "/out/1.log"
            api.worker.link.send(OutputData(question.stream, data))
        assert (await reading).body == b"abcde"

    play(tmp_path, story)


def test_following_output_goes_on_until_the_job_has_ended(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        async def answer(wait: bool, offset: int, data: bytes | None) -> None:
            question = await api.worker.hears(ReadOutput)
            assert isinstance(question, ReadOutput)
            assert (question.wait, question.offset) == (wait, offset)
            if data is not None:
                api.worker.link.send(OutputData(question.stream, data))

        following = asyncio.ensure_future(start_and_follow(api))
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        api.worker.link.send(Started(start.attempt, 42, 1_000_000, "/out/1.log", 0))
        await answer(wait=False, offset=0, data=b"ab")
        await answer(wait=False, offset=2, data=b"")
        await answer(wait=True, offset=2, data=b"c")
        await answer(wait=False, offset=2, data=b"c")
        await answer(wait=False, offset=3, data=b"")
        await answer(wait=True, offset=3, data=None)
        await end(api, start.attempt, 1, output_bytes=4)
        await api.worker.hears(CloseOutput)
        await answer(wait=False, offset=3, data=b"d")
        await answer(wait=False, offset=4, data=b"")
        assert (await following).body == b"abcd"

    async def start_and_follow(api: Api) -> Answer:
        await api.post("/jobs", ONE)
        return await api.get("/jobs/1/output?follow=1")

    play(tmp_path, story)


def test_output_of_a_job_that_has_not_started_is_not_found(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await api.post("/jobs", ONE)
        assert (await api.get("/jobs/1/output")).status == 404
        assert (await api.get("/jobs/9/output")).status == 404

    play(tmp_path, story)


def test_pruning_forgets_jobs_and_has_their_output_removed(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        attempt = await start_one(api)
        await end(api, attempt, 1, output_bytes=7)
        dry = await api.post("/jobs/prune", {"older_s": 0, "dry_run": True})
        assert dry.document == {"jobs": 1, "output_bytes": 7}
        done = await api.post("/jobs/prune", {"older_s": 0})
        assert done.document == {"jobs": 1, "output_bytes": 7}
        heard = await api.worker.hears(RemoveOutput)
        assert heard == RemoveOutput(["/out/1.log"], 1)
        assert (await api.get("/jobs/1")).status == 404
        daemon = (await api.get("/overview")).document["daemon"]
        assert daemon["jobs"]["succeeded"] == 0
        assert daemon["output_bytes"] == 0

    play(tmp_path, story)


def test_stopping_the_daemon_may_end_its_jobs_first(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        attempt = await start_one(api)
        stopping = asyncio.ensure_future(api.post("/daemon/stop", {"jobs": True}))
        await api.worker.hears(Stop)
        assert not api.stopped.is_set()
        await end(api, attempt, 1)
        assert (await stopping).document["jobs"] == [1]
        await api.stopped.wait()

    play(tmp_path, story)


def test_text_that_is_not_utf8_goes_in_and_comes_out_again(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        odd = "caf\udce9"
        body = {
            "jobs": [{"command": ["echo", odd], "env": {"A": odd}}],
            "environment": {"B": odd},
            "directory": f"/{odd}",
        }
        assert (await api.post("/jobs", body)).status == 200
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        assert start.words == ("echo", odd)
        assert start.base_env == {"B": odd}
        job = (await api.get("/jobs/1")).document
        assert job["command"] == ["echo", odd]
        assert job["cwd"] == f"/{odd}"

    play(tmp_path, story)
