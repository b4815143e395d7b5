"""The journal, by page and as a stream over a real socket."""

from pathlib import Path

import pytest
from tests.support.calling import Api, play
from tests.support.event_streams import listening, served

from grass.api.routes import events


async def kinds(api: Api, query: str = "") -> list[str]:
    page = await api.get(f"/events?{query}")
    return [event["kind"] for event in page.document["events"]]


async def enqueue(api: Api, count: int = 1) -> None:
    answer = await api.post("/jobs", {"jobs": [{"command": ["x"]}] * count})
    assert answer.status == 200


def test_the_journal_is_read_by_page(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api)
        await enqueue(api)
        page = (await api.get("/events?limit=2")).document
        assert len(page["events"]) == 2
        assert page["next"] == page["events"][-1]["seq"]
        rest = (await api.get(f"/events?after={page['next']}")).document
        assert rest["next"] is None
        seqs = [event["seq"] for event in page["events"] + rest["events"]]
        assert seqs == sorted(set(seqs))
        last = rest["events"][-1]
        assert (last["kind"], last["job"], last["data"]) == ("enqueued", 2, {"last": 2})
        assert last["actor"].startswith("uid:")
        assert last["at"].endswith("Z")

    play(tmp_path, story)


def test_events_are_found_by_job_and_kind(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api)
        await enqueue(api)
        await api.post("/jobs/hold", {"select": ["2"]})
        assert await kinds(api, "job=2") == ["enqueued", "held"]
        assert await kinds(api, "kind=held&kind=paused") == ["paused", "held"]
        assert await kinds(api, "kind=nothing") == []

    play(tmp_path, story)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "after=x", "job=x", "after=-1"]
)
def test_a_bad_question_is_refused(tmp_path: Path, query: str) -> None:
    async def story(api: Api) -> None:
        answer = await api.get(f"/events?{query}")
        assert (answer.status, answer.document["code"]) == (400, "usage")

    play(tmp_path, story)


def test_a_stream_begins_with_what_happens_next(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        async with served(api, tmp_path), listening(tmp_path) as stream:
            begin = await stream.message()
            assert begin is not None
            assert list(begin) == ["id"]
            await enqueue(api)
            event = await stream.event()
            assert (event["kind"], event["job"]) == ("enqueued", 1)
            assert event["seq"] == int(begin["id"]) + 1
            await api.post("/jobs/hold", {"select": ["1"]})
            assert (await stream.event())["kind"] == "held"

    play(tmp_path, story)


def test_a_stream_goes_on_after_a_number(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api)
        await enqueue(api)
        all_of_them = (await api.get("/events")).document["events"]
        after = all_of_them[-2]["seq"]
        async with served(api, tmp_path):
            async with listening(tmp_path, f"?after={after}") as stream:
                assert await stream.event() == all_of_them[-1]
            header = f"Last-Event-ID: {after}\r\n"
            async with listening(tmp_path, header=header) as stream:
                assert await stream.event() == all_of_them[-1]

    play(tmp_path, story)


def test_a_long_journal_is_streamed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "LARGEST_PAGE", 10)

    async def story(api: Api) -> None:
        await enqueue(api, 30)
        await api.post("/jobs/hold", {"select": ["all"]})
        query = "?after=0&kind=held"
        async with served(api, tmp_path), listening(tmp_path, query) as stream:
            held = sum(job.state == "held" for job in api.broker.state.jobs.values())
            assert held > 20
            seen = [(await stream.event())["job"] for _ in range(held)]
            assert len(set(seen)) == held

    play(tmp_path, story)


def test_a_stream_ends_when_the_daemon_stops(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        async with served(api, tmp_path) as server, listening(tmp_path) as stream:
            assert await stream.message() is not None
            server.stop()
            assert await stream.message() is None

    play(tmp_path, story)
