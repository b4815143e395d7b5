"""Tasks over the API: blobs go up, jobs name them, workers fetch, results come back."""

import asyncio
import hashlib
import os
from base64 import b64encode
from pathlib import Path
from typing import Any

from tests.support.calling import Answer, Api, play

from grass.api.routes.tasks.results import HEAD
from grass.link.messages import (
    BlobData,
    Exited,
    OutputData,
    ReadBlob,
    ReadOutput,
    Start,
)
from grass.model.jobs.task_call import MOST_INLINE
from grass.queries.results import CHUNK

FUNCTION = b"a pickled function"


def name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


NAME = name_of(FUNCTION)
TASK = {"function": NAME, "python": "3.11", "name": "train", "interpreter": "/py"}


async def upload(api: Api, data: bytes, name: str | None = None) -> Answer:
    return await api.send("PUT", f"/blobs/{name or name_of(data)}", data)


async def enqueue(api: Api, job: dict[str, Any], **more: Any) -> Answer:
    return await api.post("/jobs", {"jobs": [job], **more})


def test_a_blob_is_added_once_and_asked_for_before(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        other = name_of(b"other")
        asked = {"names": [NAME, other]}
        found = (await api.post("/blobs/missing", asked)).document
        assert found == {"missing": [NAME, other], "largest": 2**31, "room": 2**34}
        answer = await upload(api, FUNCTION)
        assert (answer.status, answer.document["added"]) == (201, True)
        answer = await upload(api, FUNCTION)
        assert (answer.status, answer.document["added"]) == (200, False)
        found = (await api.post("/blobs/missing", asked)).document
        assert found["missing"] == [other]

    play(tmp_path, story)


def test_bad_blobs_are_refused_and_nothing_of_them_is_kept(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        wrong = await upload(api, b"something else", NAME)
        assert (wrong.status, "SHA-256" in wrong.document["detail"]) == (400, True)
        assert (await upload(api, b"x", "../../etc")).status == 404
        assert (await upload(api, b"x", "abc")).status == 400
        assert (await api.post("/blobs/missing", {"names": ["x"]})).status == 400
        assert not list(api.broker.blobs._blobs.names())
        reader = await api.new_token("read")
        refused = await api.remote("PUT", f"/blobs/{NAME}", {}, reader)
        assert refused.status == 403

    play(tmp_path, story)


def test_what_is_about_another_machine_is_dropped(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token("submit")
        await upload(api, FUNCTION)
        about = {"environment": {"A": "1"}, "directory": "/home", "umask": 0o77}
        for job in ({"command": ["x"]}, {"task": TASK}):
            body = {"jobs": [{**job, "hold": True}], "defaults": {}, **about}
            done = await api.remote("POST", "/jobs", body, token)
            state = api.broker.state
            spec = state.specs[state.jobs[done.document["first"]].spec]
            assert (spec.base_env, spec.umask) == (None, None)
            # A directory is a name, which a worker has or lacks.
            assert spec.cwd == "/home"
            assert spec.task is None or spec.task.interpreter == ""

    play(tmp_path, story)


def test_a_job_cannot_name_a_blob_that_is_not_there(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        answer = await enqueue(api, {"task": TASK})
        assert (answer.status, answer.document["code"]) == (409, "missing-blob")
        await upload(api, FUNCTION)
        gone = name_of(b"arguments")
        answer = await enqueue(api, {"task": TASK, "arguments": f"sha256:{gone}"})
        assert answer.document["code"] == "missing-blob"
        assert gone in answer.document["detail"]
        assert not api.broker.state.jobs

    play(tmp_path, story)


def test_a_task_is_an_ordinary_job_under_its_functions_name(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await upload(api, FUNCTION)
        data = b64encode(b"\x80arguments").decode()
        answer = await enqueue(api, {"task": TASK, "arguments": data})
        assert answer.status == 200, answer.document
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        assert start.task is not None
        assert (start.task.function, start.task.python) == (NAME, "3.11")
        # The worker is not known to be on the caller's machine.
        assert start.arguments == b"\x80arguments"
        assert start.owner == f"uid:{os.geteuid()}"
        job = (await api.get("/jobs/1")).document
        assert (job["name"], job["command"], job["task"]) == (
            "train",
            ["train(...)"],
            "train",
        )
        explained = (await api.get("/jobs/1/explain")).document
        assert explained["state"] == "running"

    play(tmp_path, story)


def test_an_array_of_tasks_shares_its_spec_and_differs_in_arguments(
    tmp_path: Path,
) -> None:
    async def story(api: Api) -> None:
        large = b"x" * (MOST_INLINE + 1)
        await upload(api, FUNCTION)
        await upload(api, large)
        texts = [b64encode(bytes([one])).decode() for one in range(3)]
        texts.append(f"sha256:{name_of(large)}")
        answer = await enqueue(api, {"task": TASK}, arguments=texts)
        assert (answer.document["first"], answer.document["last"]) == (1, 4)
        jobs = api.broker.state.jobs
        assert len({job.common.spec for job in jobs.values()}) == 1
        assert [jobs[one].index for one in range(1, 5)] == [1, 2, 3, 4]
        assert [jobs[one].arguments for one in range(1, 4)] == [b"\0", b"\1", b"\2"]
        assert jobs[4].arguments_blob == name_of(large)

    play(tmp_path, story)


def test_bad_tasks_get_one_sentence_each(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await upload(api, FUNCTION)
        too_long = b64encode(b"x" * (MOST_INLINE + 1)).decode()
        await api.put("/queues/p", {"command": ["echo"]})
        cases: list[tuple[dict[str, Any], str]] = [
            ({"task": TASK, "command": ["x"]}, "has no command"),
            ({"task": TASK, "arguments": "?"}, "not base64"),
            ({"task": TASK, "arguments": too_long}, "upload them as a blob"),
            ({"task": TASK, "arguments": "sha256:x"}, "no SHA-256"),
            ({"task": TASK, "queue": "p"}, "runs a command of its own"),
            ({"task": TASK, "stdin": "pipe"}, "no stdin"),
            ({"task": {**TASK, "function": "x"}}, "no SHA-256"),
            ({"task": {**TASK, "python": "three"}}, "no version of Python"),
            ({"task": {**TASK, "interpreter": "py"}}, "not an absolute path"),
            ({"command": ["x"], "arguments": "eA=="}, "only a task has arguments"),
        ]
        for job, part in cases:
            answer = await enqueue(api, job)
            said = answer.document
            assert answer.status == 400, said
            assert part in f"{said['detail']} {said.get('hint')}", said
        answer = await enqueue(api, {"task": TASK}, arguments=[])
        assert answer.status == 400
        assert not api.broker.state.jobs

    play(tmp_path, story)


def test_a_worker_of_the_version_before_gets_no_task(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await upload(api, FUNCTION)
        await api.add_worker("00" * 8, "{printer:1}")
        answer = await enqueue(api, {"task": TASK, "require": {"printer": 1}})
        assert (answer.status, answer.document["code"]) == (422, "never-fits")
        answer = await enqueue(api, {"task": TASK, "worker": "00" * 8})
        assert "a version that runs tasks" in answer.document["detail"]

    play(tmp_path, story)


def test_a_worker_fetches_in_pieces_and_in_order(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await upload(api, FUNCTION)
        pieces = [(1, 0, 5), (2, 5, 6), (3, 11, 100), (4, 100, 1)]
        for number, offset, length in pieces:
            api.worker.link.send(ReadBlob(number, NAME, offset, length))
        api.worker.link.send(ReadBlob(9, name_of(b"no"), 0, 1))
        api.worker.link.send(ReadBlob(10, "../x", 0, 1))
        got = [await api.worker.hears(BlobData) for _ in range(6)]
        assert got == [
            *(
                BlobData(number, FUNCTION[offset : offset + length], len(FUNCTION))
                for number, offset, length in pieces
            ),
            BlobData(9, missing=True),
            BlobData(10, missing=True),
        ]

    play(tmp_path, story)


async def end(api: Api, code: int = 0) -> None:
    start = await api.worker.hears(Start)
    assert isinstance(start, Start)
    ended = Exited(
        start.attempt, 1, code, placed_at=start.placed_at, output="/out/1/1.log"
    )
    api.worker.link.send(ended)
    await api.post("/jobs/wait", {"select": [str(start.job)]})


def test_blobs_are_forgotten_with_the_last_job_that_names_them(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await upload(api, FUNCTION)
        for _ in range(2):
            await enqueue(api, {"task": TASK})
            await end(api)
        names = api.broker.blobs._blobs.names
        await api.post("/jobs/remove", {"select": ["1"]})
        assert list(names()) == [NAME]
        await api.post("/jobs/remove", {"select": ["2"]})
        assert not list(names())
        answer = await enqueue(api, {"task": TASK})
        assert answer.document["code"] == "missing-blob"

    play(tmp_path, story)


def test_blobs_that_nobody_named_go_at_start_and_after_an_hour(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        blobs = api.broker.blobs
        await upload(api, FUNCTION)
        await upload(api, b"another")
        await enqueue(api, {"task": TASK})
        await blobs.forget([NAME, name_of(b"another")])
        assert len(list(blobs._blobs.names())) == 2
        await blobs._expire(float("inf"))
        assert list(blobs._blobs.names()) == [NAME]

    play(tmp_path, story)


def test_a_result_is_read_from_the_worker_beside_the_output(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await upload(api, FUNCTION)
        await enqueue(api, {"task": TASK})
        early = await api.get("/jobs/1/result")
        assert (early.status, early.document["code"]) == (409, "no-result")
        late = await api.get("/jobs/1/result?wait=0.01")
        assert (late.status, late.document["code"]) == (408, "timed-out")
        await end(api)
        reading = asyncio.ensure_future(api.get("/jobs/1/result?wait=9"))
        whole = b"GRASSRES\0" + bytes(CHUNK)
        for place in (0, CHUNK):
            asked = await api.worker.hears(ReadOutput)
            assert isinstance(asked, ReadOutput)
            assert (asked.path, asked.offset) == ("/out/1/1.result", place)
            piece = whole[asked.offset : asked.offset + asked.length]
            api.worker.link.send(OutputData(asked.stream, piece))
        answer = await reading
        assert (answer.status, answer.body) == (200, whole)

    play(tmp_path, story)


def test_why_there_is_no_result_is_told(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await upload(api, FUNCTION)
        await enqueue(api, {"command": ["true"]})
        await end(api)
        command = (await api.get("/jobs/1/result")).document
        assert "runs a command" in command["detail"]
        await api.post("/pause", {})
        await enqueue(api, {"task": TASK})
        await api.post("/jobs/cancel", {"select": ["2"]})
        cancelled = (await api.get("/jobs/2/result")).document
        assert "is cancelled" in cancelled["detail"]
        await api.post("/jobs/remove", {"select": ["2"]})
        pruned = await api.get("/jobs/2/result")
        assert (pruned.status, pruned.document["code"]) == (409, "no-result")
        assert "was forgotten with its result at 20" in pruned.document["detail"]
        assert (await api.get("/jobs/99/result")).status == 404

    play(tmp_path, story)


def test_small_results_of_many_come_together(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await upload(api, FUNCTION)
        for _ in range(3):
            await enqueue(api, {"task": TASK})
            await end(api)
        asking = asyncio.ensure_future(
            api.post("/jobs/results", {"jobs": [1, 2, 3, 99]})
        )
        asked = await api.worker.hears(ReadOutput)
        assert isinstance(asked, ReadOutput)
        assert len(asked.files) == 3
        files: list[bytes | None] = [b"one", None, b"three" * 100_000]
        api.worker.link.send(OutputData(asked.stream, b"", files=files))
        answer = await asking
        # The second is missing or large, and the third more than was asked for.
        assert answer.body == HEAD.pack(1, 1, 3) + b"one"
        assert (await api.post("/jobs/results", {"jobs": [1] * 1001})).status == 400

    play(tmp_path, story)
