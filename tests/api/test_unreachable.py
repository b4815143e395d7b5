"""Jobs of a worker that is cut off: what is said of them, and what still works."""

import asyncio
import logging
from pathlib import Path

import pytest
from tests.api.farm import (
    SINCE,
    cut_off,
    enqueue,
    farm,
    joined,
    runs_out_of_sight,
    started,
    told,
)
from tests.api.tcp_api import TcpApi, over_tcp
from tests.support.calling import Api, play
from tests.support.far_end import FarEnd

from grass.api.server.cancellation import StreamAborted
from grass.link.messages import Exited, OutputData, ReadOutput, Start
from grass.model.times import rfc3339

TOLD = "2025-08-04T21:40:12Z"


async def answers(worker: FarEnd, data: bytes) -> None:
    """Have a worker answer one question about output."""
    question = await worker.hears(ReadOutput)
    assert isinstance(question, ReadOutput)
    worker.link.send(OutputData(question.stream, data))


AWAY = (503, "unreachable", f"worker `farm` is unreachable since {TOLD}")


@pytest.mark.parametrize("query", ["", "?tail=3", "?follow=1", "?follow=1&attempt=1"])
def test_output_says_which_worker_has_it(tmp_path: Path, query: str) -> None:
    async def story(api: Api) -> None:
        await runs_out_of_sight(api)
        answer = await api.get(f"/jobs/1/output{query}")
        assert told(answer) == AWAY
        assert answer.document["hint"] == "the output of job 1 is there"

    play(tmp_path, story)


def test_the_output_of_an_ended_job_is_out_of_reach_too(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        await enqueue(api, worker="farm")
        start = await started(worker)
        worker.link.send(Exited(start.attempt, 2_000_000, 0, output_bytes=3))
        await api.broker.ended([1])
        await cut_off(api, worker)
        api.broker.state.workers["f1"].heard_at = SINCE
        for query in ("", "?follow=1"):
            assert told(await api.get(f"/jobs/1/output{query}")) == AWAY

    play(tmp_path, story)


def test_following_is_cut_off_with_its_worker(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        await enqueue(api, worker="farm")
        await started(worker)
        following = asyncio.ensure_future(api.get("/jobs/1/output?follow=1"))
        await answers(worker, b"one\n")
        await answers(worker, b"")
        await worker.hears(ReadOutput)
        await cut_off(api, worker)
        with pytest.raises(StreamAborted):
            await following

    play(tmp_path, story)


def test_nothing_is_in_the_log_of_output_that_is_cut_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(tcp: TcpApi) -> None:
        worker = await joined(tcp.api)
        await enqueue(tcp.api, worker="farm")
        await started(worker)
        token = await tcp.api.new_token("read")
        visit = await tcp.visit()
        asking = visit.ask("GET", "/jobs/1/output?follow=1", token=token)
        following = asyncio.ensure_future(asking)
        await answers(worker, b"one\n")
        await answers(worker, b"")
        await worker.hears(ReadOutput)
        await cut_off(tcp.api, worker)
        # The reply has begun, and never says that it is over.
        with pytest.raises(KeyError, match="content-length"):
            await following
        assert b"\r\n0\r\n" not in await visit.reader.read()

    with caplog.at_level(logging.WARNING):
        over_tcp(tmp_path, story)
    assert not caplog.records


def test_an_attempt_that_was_not_seen_to_start_is_not_waited_for(
    tmp_path: Path,
) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        await enqueue(api, worker="farm")
        await worker.hears(Start)
        following = asyncio.ensure_future(api.get("/jobs/1/output?follow=1"))
        # It has to wait by now.
        for _ in range(10):
            await api.get("/jobs/1")
        await cut_off(api, worker)
        assert (await following).document["code"] == "unreachable"

    play(tmp_path, story)


def test_following_goes_on_elsewhere_when_an_attempt_was_lost(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api, labels=("a100",))
        await enqueue(api, labels=["a100"], retry_lost=1)
        await started(worker)
        await cut_off(api, worker)
        forgot = await api.send("DELETE", "/workers/farm", b"")
        assert forgot.document["jobs"] == [1]
        await api.post("/jobs/edit", {"select": ["1"], "labels": None})
        # The forgotten worker may still run it: only a person knows better.
        await api.post("/jobs/release", {"select": ["1"]})
        start = await started(api.worker)
        assert start.number == 2
        path = "/jobs/1/output?follow=1&begin=1:0"
        following = asyncio.ensure_future(api.get(path))
        await answers(api.worker, b"two\n")
        api.worker.link.send(Exited(start.attempt, 2_000_000, 0, output_bytes=4))
        while not following.done():
            asked = asyncio.ensure_future(answers(api.worker, b""))
            either = {asked, following}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            asked.cancel()
        assert (await following).body == b"two\n"
        gone = await api.get("/jobs/1/output?attempt=1")
        assert gone.status == 404
        assert "on a worker that was forgotten" in gone.document["detail"]

    play(tmp_path, story)


def test_a_job_out_of_sight_says_since_when_and_keeps_its_other_flags(
    tmp_path: Path,
) -> None:
    async def story(api: Api) -> None:
        await runs_out_of_sight(api)
        await api.post("/jobs/cancel", {"select": ["1"]})
        job = (await api.get("/jobs/1")).document
        assert job["flags"] == ["stopping", "unreachable"]
        assert job["unreachable_since"] == rfc3339(SINCE)

    play(tmp_path, story)


def test_an_explanation_says_what_ends_the_wait(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await runs_out_of_sight(api)
        why = (await api.get("/jobs/1/explain")).document["why"]
        assert why == (
            f"worker `farm` is unreachable since {TOLD}; that ends when `farm` is"
            " back, or by `grass workers forget farm`"
        )
        await api.post("/jobs/cancel", {"select": ["1"]})
        why = (await api.get("/jobs/1/explain")).document["why"]
        assert why.startswith("it is to be stopped, but worker `farm` is unreachable")

    play(tmp_path, story)


def test_an_explanation_says_when_a_lease_ends_it(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await runs_out_of_sight(api, lease_s=100.0)
        why = (await api.get("/jobs/1/explain")).document["why"]
        before, _, end = why.partition(", or in ")
        assert before.endswith("by `grass workers forget farm`")
        seconds, _, rest = end.partition(" ")
        # Lease, grace, a tenth of the lease and ten seconds.
        assert 100 < int(seconds) <= 100 + 15 + 10 + 10
        assert rest == "s, when its lease is over and it is lost"

    play(tmp_path, story)


def test_what_is_free_of_a_worker_that_is_away_is_still_known(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await runs_out_of_sight(api)
        found = await farm(api)
        assert not found["connected"]
        assert sum(found["free"]["cpu"].values()) == 3

    play(tmp_path, story)


async def reason(api: Api, job: int) -> str:
    found: str = (await api.get(f"/jobs/{job}")).document["reason"]
    why = (await api.get(f"/jobs/{job}/explain")).document
    assert why["why"] == found
    return found


def test_a_reason_names_every_worker_that_takes_no_jobs(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        await api.post("/workers/farm/drain", {"on": True})
        await enqueue(api, worker="farm")
        draining = "worker `farm`, which could run it, is draining"
        assert await reason(api, 1) == draining
        await cut_off(api, worker)
        assert await reason(api, 1) == f"{draining} and unreachable"
        await api.add_worker("barn", "{cpu:4}")
        await api.post("/workers/barn/drain", {"on": True})
        await enqueue(api, require={"cpu": 4})
        assert await reason(api, 2) == (
            "no worker that could run it takes jobs: `barn` is draining,"
            " `farm` is draining and unreachable"
        )

    play(tmp_path, story)


def test_a_reason_names_the_worker_that_is_nearest(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await joined(api)
        await enqueue(api, worker="farm", require={"cpu": 3})
        await enqueue(api, require={"cpu": 2})
        await enqueue(api, require={"cpu": 2})
        assert await reason(api, 3) == "needs cpu 2, free 1 of 4 on `farm`"

    play(tmp_path, story)


def test_forgetting_tells_what_went_with_the_worker(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        token = await api.new_token("operate")
        api.broker.state.tokens["operate"].worker = "f1"
        made = await api.remote("PUT", "/queues/lab", {"capacity": "{slot:1}"}, token)
        assert made.status == 200, made.document
        await enqueue(api, worker="farm")
        await enqueue(api, worker="farm", hold=True)
        await cut_off(api, worker)
        done = (await api.send("DELETE", "/workers/farm", b"")).document
        assert (done["jobs"], done["queues"]) == ([1], ["lab"])
        await api.post("/jobs/release", {"select": ["2"]})
        assert await reason(api, 2) == (
            "worker `farm`, the only one that may run it, is forgotten"
            " (`grass edit 2 --worker NAME` chooses another)"
        )
        for job in (1, 2):
            shown = (await api.get(f"/jobs/{job}")).document
            assert shown["wanted_worker"] == "farm"
        lost = (await api.get("/jobs/1")).document
        assert (lost["worker"], lost["attempts"][0]["worker"]) == ("farm", "farm")
        await api.post("/jobs/edit", {"select": ["2"], "worker": None})
        await api.worker.hears(Start)

    play(tmp_path, story)
