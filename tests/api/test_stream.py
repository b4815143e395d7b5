"""What changes, as a stream of topics over a real socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.calling import Api, play
from tests.support.event_streams import Stream, listening, served
from tests.support.far_end import FarEnd
from tests.support.patience import PATIENCE_S

from grass.broker.shell import device_requests
from grass.errors import GrassError
from grass.link.messages import Devices, ReadDevices
from grass.model.usage.gpu_use import GpuUse
from grass.queries.feed import changed_jobs, device_readings, feed
from grass.queries.feed.changed_jobs import ChangedRows, Wanted
from grass.queries.presentation import Presenter, Viewer
from grass.store.interface import Store


@asynccontextmanager
async def following(folder: Path, topics: str, header: str = "") -> AsyncIterator[Any]:
    async with listening(folder, f"?topics={topics}", header, "/stream") as stream:
        yield stream


async def enqueue(api: Api, count: int = 1, **fields: Any) -> None:
    body = {"jobs": [{"command": ["x"], **fields}] * count}
    assert (await api.post("/jobs", body)).status == 200


async def hello(stream: Stream) -> int:
    begin = await stream.message()
    assert begin is not None
    assert begin["event"] == "hello"
    return int(begin["id"])


def test_a_stream_begins_with_where_it_is_and_what_there_is(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        async with served(api, tmp_path), following(tmp_path, "overview") as stream:
            begin = await stream.frame("hello")
            assert begin["version"] == "1.2.3"
            shown = await stream.frame("overview")
            assert shown == (await api.get("/overview")).document
            assert shown["daemon"]["last_event"] == begin["seq"]

    play(tmp_path, story)


def test_jobs_that_changed_are_sent_as_documents(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api, 2)
        async with served(api, tmp_path), following(tmp_path, "jobs,events") as stream:
            await hello(stream)
            await api.post("/jobs/hold", {"select": ["2"]})
            sent = await stream.frame("jobs")
            assert sent == {
                "jobs": [(await api.get("/jobs/2")).document],
                "removed": [],
                "more": 0,
            }
            (event,) = (await stream.frame("events"))["events"]
            assert (event["kind"], event["job"]) == ("held", 2)

    play(tmp_path, story)


def test_all_jobs_of_a_call_are_sent(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        async with served(api, tmp_path), following(tmp_path, "jobs") as stream:
            await hello(stream)
            await enqueue(api, 3)
            sent = await stream.frame("jobs")
            assert [one["id"] for one in sent["jobs"]] == [1, 2, 3]

    play(tmp_path, story)


def test_what_has_no_room_in_a_frame_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_jobs, "MOST_JOBS", 2)

    async def story(api: Api) -> None:
        await api.post("/pause", {})
        async with served(api, tmp_path), following(tmp_path, "jobs") as stream:
            await hello(stream)
            await enqueue(api, 5)
            sent = await stream.frame("jobs")
            assert [one["id"] for one in sent["jobs"]] == [4, 5]
            assert sent["more"] == 3

    play(tmp_path, story)


def test_removed_jobs_make_a_page_read_anew(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api)
        await api.post("/jobs/cancel", {"select": ["1"]})
        async with served(api, tmp_path), following(tmp_path, "jobs") as stream:
            await hello(stream)
            await api.post("/jobs/remove", {"select": ["1"]})
            sent = await stream.frame("jobs")
            assert (sent["jobs"], sent["more"]) == ([], 1)

    play(tmp_path, story)


def test_who_comes_back_gets_what_was_missed(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api, 2)
        async with served(api, tmp_path):
            async with following(tmp_path, "jobs,events") as stream:
                seen = await hello(stream)
            await api.post("/jobs/hold", {"select": ["2"]})
            header = f"Last-Event-ID: {seen}\r\n"
            async with following(tmp_path, "jobs,events", header) as stream:
                assert await hello(stream) == seen + 1
                (job,) = (await stream.frame("jobs"))["jobs"]
                assert (job["id"], job["state"]) == (2, "held")
                (event,) = (await stream.frame("events"))["events"]
                assert (event["seq"], event["kind"]) == (seen + 1, "held")

    play(tmp_path, story)


@pytest.mark.parametrize("seen", [0, 99_999])
def test_who_missed_too_much_is_told_to_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: int
) -> None:
    monkeypatch.setattr(changed_jobs, "MOST_EVENTS", 2)

    async def story(api: Api) -> None:
        await api.post("/pause", {})
        for _ in range(4):
            await enqueue(api)
        header = f"Last-Event-ID: {seen}\r\n"
        async with (
            served(api, tmp_path),
            following(tmp_path, "jobs", header) as stream,
        ):
            begin = await hello(stream)
            again = await stream.message()
            assert again == {"event": "resync", "id": str(begin), "data": "{}"}

    play(tmp_path, story)


def test_devices_are_sent_while_somebody_follows_them(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await api.add_worker("gpus", "{gpu:1}")
        async with served(api, tmp_path), following(tmp_path, "devices") as stream:
            asked = await worker.hears(ReadDevices)
            assert isinstance(asked, ReadDevices)
            worker.link.send(Devices(asked.number, []))
            sent = await stream.frame("devices")
            assert [one["name"] for one in sent["workers"]] == ["desk", "gpus"]

    play(tmp_path, story)


async def answering(worker: FarEnd, gpu: GpuUse) -> None:
    """Answer whenever somebody asks for devices."""
    while True:
        asked = await worker.hears(ReadDevices)
        assert isinstance(asked, ReadDevices)
        worker.link.send(Devices(asked.number, [gpu]))


async def devices_until(stream: Stream, stale: dict[str, bool]) -> dict[str, Any]:
    """Read frames until these workers are stale, or not; return all GPUs by worker."""
    while True:
        sent = await stream.frame("devices")
        told = {one["name"]: one["stale"] for one in sent["workers"]}
        if {name: told[name] for name in stale} == stale:
            return {one["name"]: one["gpus"] for one in sent["workers"]}


def test_a_worker_that_does_not_answer_holds_no_other_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_requests, "PATIENCE_S", 10 * PATIENCE_S)
    monkeypatch.setattr(feed, "DEVICES_S", 0.01)
    monkeypatch.setattr(device_readings, "STALE_S", 0.0)

    async def story(api: Api) -> None:
        quick, late = [
            await api.add_worker(one, "{gpu:1}") for one in ("quick", "late")
        ]
        gpu = GpuUse("0", "A100", "GPU-0", 2**30, utilization=40)
        first = asyncio.create_task(answering(late, gpu))
        other = asyncio.create_task(answering(quick, gpu))
        async with served(api, tmp_path), following(tmp_path, "devices") as stream:
            await devices_until(stream, {"quick": False, "late": False})
            first.cancel()
            seen = await devices_until(stream, {"quick": False, "late": True})
            assert seen["late"][0]["utilization"] == 40
            again = asyncio.create_task(answering(late, gpu))
            await devices_until(stream, {"quick": False, "late": False})
        again.cancel()
        other.cancel()

    play(tmp_path, story)


def test_a_single_call_has_what_is_known_of_a_silent_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_requests, "PATIENCE_S", 10 * PATIENCE_S)
    monkeypatch.setattr(device_readings, "STALE_S", 0.0)

    async def asked(api: Api) -> dict[str, Any]:
        answer = await asyncio.wait_for(api.get("/devices"), PATIENCE_S)
        return {one["name"]: one for one in answer.document["workers"]}

    async def story(api: Api) -> None:
        quick, silent = [
            await api.add_worker(one, "{gpu:1}") for one in ("quick", "silent")
        ]
        gpu = GpuUse("0", "A100", "GPU-0", 2**30, utilization=40)
        other = asyncio.create_task(answering(quick, gpu))
        told = await asked(api)
        assert (told["quick"]["stale"], told["quick"]["problem"]) == (False, None)
        assert told["silent"]["stale"]
        assert "has not answered yet" in told["silent"]["problem"]
        assert [one["unit"] for one in told["silent"]["gpus"]] == ["0"]
        answer = asyncio.create_task(answering(silent, gpu))
        assert not (await asked(api))["silent"]["stale"]
        answer.cancel()
        told = await asked(api)
        assert (told["quick"]["stale"], told["silent"]["stale"]) == (False, True)
        assert told["silent"]["gpus"][0]["utilization"] == 40
        other.cancel()

    play(tmp_path, story)


def test_many_followers_are_served_by_one_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[Wanted] = []
    read = changed_jobs.read_changes

    def counted(store: Store, wanted: Wanted) -> ChangedRows:
        readings.append(wanted)
        return read(store, wanted)

    monkeypatch.setattr(feed, "read_changes", counted)

    async def story(api: Api) -> None:
        await api.post("/pause", {})
        async with (
            served(api, tmp_path),
            following(tmp_path, "jobs") as one,
            following(tmp_path, "jobs") as two,
        ):
            await hello(one)
            await hello(two)
            before = len(readings)
            await enqueue(api)
            assert await one.frame("jobs") == await two.frame("jobs")
            # One for the two that came, and one for the job.
            assert len(readings) <= before + 2

    play(tmp_path, story)


def test_values_of_others_are_hidden_from_who_only_reads(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        tokens = [await api.new_token(role) for role in ("read", "operate")]
        await api.post("/jobs", {"jobs": [{"command": ["A=secret", "x"]}]})
        # A stream that begins while the daemon stops ends after what was missed.
        api.app.state.api.closing.set()
        answers = [
            await api.remote("GET", "/stream?topics=jobs&after=0", {}, token)
            for token in tokens
        ]
        assert [b"secret" in one.body for one in answers] == [False, True]
        assert "A=…".encode() in answers[0].body

    play(tmp_path, story)


def test_a_stream_ends_with_its_token(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        token = await api.new_token("read")
        async with served(api, tmp_path), following(tmp_path, "jobs") as stream:
            await hello(stream)
            asking = api.remote("GET", "/stream?topics=jobs", {}, token)
            reading = asyncio.create_task(asking)
            name = token.partition(".")[0]
            followers = api.app.state.api.feed._followers
            while len(followers) < 2:  # noqa: ASYNC110 -- nothing tells of it
                await asyncio.sleep(0)
            await api.send("DELETE", f"/tokens/{name}", b"")
            await enqueue(api)
            assert (await stream.frame("jobs"))["jobs"]
            answer = await reading
            assert b"event: hello" in answer.body
            assert b"event: jobs" not in answer.body

    play(tmp_path, story)


def test_viewers_that_see_the_same_are_one_class() -> None:
    mine, other = Viewer("token:a", False), Viewer("token:b", False)
    operator = Viewer("token:c", True)
    owners = {"token:a", "uid:1"}
    classes = {feed.seen_as(one, owners) for one in (mine, other, operator)}
    assert classes == {mine, feed.OUTSIDER, feed.OPERATOR}


def test_what_could_not_be_sent_is_sent_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, failures = Presenter.jobs, [GrassError("the store is away")]
    monkeypatch.setattr(feed, "LOOK_S", 0.1)

    async def failing(self: Presenter, *arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return await make(self, *arguments)

    async def story(api: Api) -> None:
        await api.post("/pause", {})
        async with served(api, tmp_path), following(tmp_path, "jobs") as stream:
            await hello(stream)
            monkeypatch.setattr(Presenter, "jobs", failing)
            await enqueue(api)
            assert [one["id"] for one in (await stream.frame("jobs"))["jobs"]] == [1]
            assert not failures

    play(tmp_path, story)


def test_after_a_defect_streams_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: Presenter, *arguments: Any) -> Any:
        raise RuntimeError("a defect")

    async def story(api: Api) -> None:
        await api.post("/pause", {})
        async with served(api, tmp_path), following(tmp_path, "jobs") as stream:
            await hello(stream)
            with monkeypatch.context() as patch:
                patch.setattr(Presenter, "jobs", broken)
                await enqueue(api)
                while await stream.message() is not None:
                    pass
            async with following(tmp_path, "jobs") as another:
                await hello(another)
                await enqueue(api)
                assert [one["id"] for one in (await another.frame("jobs"))["jobs"]]

    play(tmp_path, story)


def test_a_stream_ends_when_the_daemon_stops(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        async with served(api, tmp_path), following(tmp_path, "overview") as stream:
            await hello(stream)
            api.app.state.api.closing.set()
            while await stream.message() is not None:
                pass

    play(tmp_path, story)


@pytest.mark.parametrize("topics", ["", "jobs,nothing", "log", "overview&after=x"])
def test_a_bad_question_is_refused(tmp_path: Path, topics: str) -> None:
    async def story(api: Api) -> None:
        answer = await api.get(f"/stream?topics={topics}")
        assert (answer.status, answer.document["code"]) == (400, "usage")

    play(tmp_path, story)
