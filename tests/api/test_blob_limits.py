"""How much may be uploaded before a job names it, and what a slow upload holds up."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.calling import Answer, Api, play
from tests.support.patience import until

from grass.broker.core.jobs.blob_claims import UNNAMED_S
from grass.broker.shell.kept_blobs import THREADS, BlobLimits
from grass.store.blob_folder import FileDraft

MOST = 1000


def name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def upload(api: Api, data: bytes) -> Answer:
    return await api.send("PUT", f"/blobs/{name_of(data)}", data)


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "grass.api.routes.tasks.blobs._limits", lambda _: BlobLimits(2**31, MOST)
    )


async def room(api: Api) -> int:
    found = (await api.post("/blobs/missing", {"names": []})).document["room"]
    assert isinstance(found, int)
    return found


def test_bytes_that_no_job_names_are_limited_for_each_owner(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        function = b"f" * 400
        assert await room(api) == MOST
        assert (await upload(api, function)).status == 201
        assert (await upload(api, function)).status == 200
        assert await room(api) == 600
        refused = await upload(api, b"g" * 601)
        assert refused.status == 409
        assert "than 1,000 bytes here that no job names yet" in refused.body.decode()
        assert "tasks.unnamed" in refused.document["hint"]
        assert await room(api) == 600
        assert name_of(function) in api.broker.blobs._blobs.names()
        other = await api.new_token("submit")
        answer = await api.remote("POST", "/blobs/missing", {"names": []}, other)
        assert answer.document["room"] == MOST
        # A job names it from now on.
        task = {"function": name_of(function), "python": "3.11", "name": "f"}
        await api.post("/jobs", {"jobs": [{"task": task}]})
        assert await room(api) == MOST
        assert (await upload(api, b"g" * 1000)).status == 201

    play(tmp_path, story)


def test_what_has_come_of_a_failed_upload_counts_no_more(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        wrong = await api.send("PUT", f"/blobs/{name_of(b'a')}", b"b" * 900)
        assert wrong.status == 400
        assert await room(api) == MOST

    play(tmp_path, story)


def test_an_hour_later_they_are_gone_and_count_no_more(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await upload(api, b"x" * 1000)
        blobs, now = api.broker.blobs, asyncio.get_running_loop().time()
        await blobs._expire(now + UNNAMED_S / 2)
        assert await room(api) == 0
        await blobs._expire(now + UNNAMED_S + 60)
        assert not list(blobs._blobs.names())
        assert await room(api) == MOST

    play(tmp_path, story)


@pytest.fixture(name="go_on")
def _go_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Hold up uploads, as a disk does that syncs gigabytes."""
    finish, go_on = FileDraft.finish, threading.Event()

    def slow(self: FileDraft) -> bool:
        go_on.wait()
        return finish(self)

    monkeypatch.setattr(FileDraft, "finish", slow)
    yield go_on
    go_on.set()


def test_slow_uploads_hold_up_nothing_else(
    tmp_path: Path, go_on: threading.Event
) -> None:
    async def story(api: Api) -> None:
        go_on.set()
        await upload(api, b"f")
        go_on.clear()
        slow = [
            asyncio.ensure_future(upload(api, bytes([one])))
            for one in range(2 * THREADS)
        ]
        blobs = api.broker.blobs
        await asyncio.to_thread(until, blobs._uploads._work_queue.qsize, "none waits")
        found = await api.post("/blobs/missing", {"names": [name_of(b"f")]})
        assert found.document["missing"] == []
        task = {"function": name_of(b"f"), "python": "3.11", "name": "f"}
        assert (await api.post("/jobs", {"jobs": [{"task": task}]})).status == 200
        assert await blobs.read(name_of(b"f"), 0, 1) == (b"f", 1)
        go_on.set()
        assert [(await one).status for one in slow] == [201] * len(slow)

    play(tmp_path, story)
