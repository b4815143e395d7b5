"""Why a job waits, in numbers, and how it ended."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.api.explaining import explained, starts
from tests.api.farm import enqueue
from tests.support.calling import Api, play

from grass.link.messages import Exited, OutputData, ReadOutput, Start, Started
from grass.queries.estimates import (
    QueuedJob,
    QueueSnapshot,
    RunningJob,
    UnfinishedJob,
    end_of_all,
    simulate,
)
from grass.queries.explanations import last_frames

SECOND = 1_000_000


def test_a_queued_job_is_told_what_it_lacks_and_who_has_it(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.put("/queues/q", {"capacity": "{printer:1}"})
        await enqueue(api, require={"cpu": 2}, name="train", queue="q")
        await starts(api)
        await enqueue(api, require={"cpu": 1, "printer": 1}, queue="q")
        await enqueue(api, queue="q", priority=5)
        told = await explained(api, 2)
        assert (told["id"], told["state"]) == (2, "queued")
        assert told["why"] == "needs cpu 1, free 0 of 2"
        cpu, printer = told["constraints"]
        assert cpu == {
            "what": "cpu",
            "need": "1",
            "have": "0",
            "of": "2",
            "ok": False,
            "note": "",
        }
        assert (printer["what"], printer["ok"], printer["have"]) == (
            "printer",
            True,
            "1",
        )
        (holder,) = told["holders"]
        assert (holder["job"], holder["name"]) == (1, "train")
        assert holder["units"] == {"cpu": {"0": 1, "1": 1}}
        assert holder["since"]
        assert (told["position"], told["overtaken"]) == (2, 0)
        assert told["estimated_start_at"] is None

    play(tmp_path, story)


def test_only_the_gpus_of_the_model_are_counted(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.put("/queues/q", {"capacity": "{gpu:3}"})
        await enqueue(api, require={"cpu": 2}, queue="q")
        await starts(api)
        wanted = {"gpu_model": "gpu:1,2"}
        await enqueue(api, require={"cpu": 1, "gpu": 1}, queue="q", **wanted)
        told = await explained(api, 2)
        gpu = told["constraints"][1]
        assert (gpu["what"], gpu["have"], gpu["of"]) == ("gpu", "2", "2")

    play(tmp_path, story)


def test_a_closed_gate_is_a_constraint(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.put("/queues/q", {"max_running": 1})
        await enqueue(api, queue="q", name="first")
        await starts(api)
        await enqueue(api, queue="q")
        told = await explained(api, 2)
        slots = told["constraints"][0]
        assert (slots["need"], slots["have"], slots["of"]) == ("1", "0", "1")
        assert [holder["job"] for holder in told["holders"]] == [1]
        await api.post("/pause", {"queue": "q"})
        told = await explained(api, 2)
        assert told["why"] == "queue `q` is paused"
        assert told["constraints"][0]["note"] == "`grass resume q`"

    play(tmp_path, story)


def test_held_and_waiting_jobs_are_told_what_they_wait_for(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await enqueue(api)
        first = await starts(api)
        await enqueue(api)
        await starts(api)
        api.worker.link.send(Exited(first.attempt, 2 * SECOND, 0))
        await api.broker.ended([1])
        begin = "2999-01-01T00:00:00.000Z"
        await enqueue(api, after=["1", "2:any"], begin_at=begin, hold=True)
        told = await explained(api, 3)
        rows = {row["what"]: row for row in told["constraints"]}
        assert list(rows) == ["hold", "job 1", "job 2", "begin"]
        assert (rows["job 1"]["have"], rows["job 1"]["ok"]) == ("succeeded", True)
        assert (rows["job 2"]["need"], rows["job 2"]["have"]) == ("ended", "running")
        assert (rows["begin"]["need"], rows["begin"]["ok"]) == (begin, False)
        assert told["estimated_start_at"] is None
        await enqueue(api, begin_at=begin)
        told = await explained(api, 4)
        assert told["estimated_start_at"] == begin
        assert told["estimate_from"] == "the time it waits for"

    play(tmp_path, story)


def test_members_of_an_array_are_estimated_from_each_other(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await enqueue(api, name="fit-{index}", array="1-3", require={"cpu": 2})
        start = await api.worker.hears(Start)
        assert isinstance(start, Start)
        api.worker.link.send(Started(start.attempt, 42, 100 * SECOND, "/out", 0))
        api.worker.link.send(Exited(start.attempt, 160 * SECOND, 0))
        await api.broker.ended([start.job])
        await starts(api)
        answer = await api.post("/jobs/estimate", {"select": ["1-3"]})
        assert answer.document["runs"] == 1

    play(tmp_path, story)


def test_an_estimate_rests_on_earlier_runs(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        for took in (50, 60, 70):
            await enqueue(api, name="train")
            start = await api.worker.hears(Start)
            assert isinstance(start, Start)
            begun = Started(start.attempt, 42, 100 * SECOND, "/out", 0)
            api.worker.link.send(begun)
            ended = Exited(start.attempt, (100 + took) * SECOND, 0)
            api.worker.link.send(ended)
            await api.broker.ended([start.job])
        await enqueue(api, name="train", require={"cpu": 2})
        await starts(api)
        await enqueue(api)
        told = await explained(api, 5)
        assert told["estimate_from"] == "median of 3 runs"
        assert told["estimated_start_at"]
        await enqueue(api, after=["4"])
        told = await explained(api, 6)
        assert told["estimate_from"] == "median of 3 runs"
        answer = await api.post("/jobs/estimate", {"select": ["4"]})
        assert answer.document["ends_at"]
        assert answer.document["runs"] == 3
        answer = await api.post("/jobs/estimate", {"select": ["4-6"]})
        assert answer.document == {"ends_at": None, "runs": 0}

    play(tmp_path, story)


def test_an_estimate_waits_for_units_that_the_queue_sees(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        for queue, unit in (("a", "0"), ("b", "1")):
            await api.put(f"/queues/{queue}", {"capacity": f"{{desk:{{'{unit}':1}}}}"})
        for name in ("first", "second", "second"):
            await enqueue(api, name=name)
            start = await api.worker.hears(Start)
            assert isinstance(start, Start)
            api.worker.link.send(Started(start.attempt, 42, 100 * SECOND, "/out", 0))
            api.worker.link.send(Exited(start.attempt, 160 * SECOND, 0))
            await api.broker.ended([start.job])
        for name, queue in (("first", "a"), ("second", "b")):
            await enqueue(api, name=name, queue=queue, require={"desk": 1})
            await starts(api)
        await enqueue(api, queue="b", require={"desk": 1})
        # The first may end at any time, and has what queue b does not see.
        assert (await explained(api, 6))["estimate_from"] == "median of 2 runs"

    play(tmp_path, story)


def test_a_failed_job_is_told_how_it_ended(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await enqueue(api)
        start = await starts(api)
        end = Exited(start.attempt, 0, 3, output_bytes=13, max_rss=4096, cpu_s=1.5)
        api.worker.link.send(end)
        await api.broker.ended([1])
        asking = asyncio.ensure_future(explained(api, 1))
        await serve_file(api, b"one\ntwo\nthree", asking)
        told = await asking
        assert (told["state"], told["why"]) == ("failed", "exit code 3")
        assert (told["exit_code"], told["signal"]) == (3, None)
        assert told["last_lines"] == ["one", "two", "three"]
        assert (told["max_rss"], told["cpu_s"], told["attempts"]) == (4096, 1.5, 1)
        assert told["took_s"] >= 0

    play(tmp_path, story)


def test_output_that_is_gone_does_not_hide_the_rest(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await enqueue(api)
        start = await starts(api)
        api.worker.link.send(Exited(start.attempt, 0, signal=9, output_bytes=5))
        await api.broker.ended([1])
        asking = asyncio.ensure_future(explained(api, 1))
        question = await api.worker.hears(ReadOutput)
        assert isinstance(question, ReadOutput)
        api.worker.link.send(OutputData(question.stream, b"", missing=True))
        told = await asking
        assert (told["why"], told["signal"]) == (
            "killed by SIGKILL (out of memory?)",
            9,
        )
        assert told["last_lines"] == []

    play(tmp_path, story)


def test_a_job_cancelled_before_it_ran_has_little_to_tell(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api)
        await api.post("/jobs/cancel", {"select": ["1"]})
        told = await explained(api, 1)
        assert (told["state"], told["attempts"]) == ("cancelled", 0)
        assert told["why"]

    play(tmp_path, story)


def test_only_one_job_is_explained(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        assert (await api.get("/jobs/7/explain")).status == 404
        assert (await api.get("/jobs/all/explain")).status == 400

    play(tmp_path, story)


async def serve_file(api: Api, content: bytes, until: asyncio.Future[Any]) -> None:
    """Answer every question about a file until nobody asks any more."""
    while not until.done():
        asked = asyncio.ensure_future(api.worker.hears(ReadOutput))
        await asyncio.wait({asked, until}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            asked.cancel()
            return
        question = asked.result()
        assert isinstance(question, ReadOutput)
        data = content[question.offset : question.offset + question.length]
        api.worker.link.send(OutputData(question.stream, data))


TWO_RUN = [RunningJob("a", 0, {"cpu": 1}), RunningJob("b", 0, {"cpu": 1})]


@pytest.mark.parametrize(
    ("waiting", "history", "at"),
    [
        ([QueuedJob("x", {"cpu": 1})], {"a": [30.0], "b": [20.0]}, 20),
        ([QueuedJob("x", {"cpu": 2})], {"a": [30.0], "b": [20.0]}, 30),
        ([QueuedJob("x", {"cpu": 1})], {"a": [30.0]}, 30),
        ([QueuedJob("x", {"cpu": 2})], {"a": [30.0]}, None),
        ([QueuedJob("x", {"cpu": 1})], {}, None),
        ([QueuedJob("a", {"cpu": 1})] * 2, {"a": [30.0], "b": [20.0]}, 30),
        ([QueuedJob("a", {"cpu": 1})] * 3, {"a": [30.0], "b": [20.0]}, 50),
        ([QueuedJob("c", {"cpu": 2}), QueuedJob("x", {"cpu": 1})], {"a": [9.0]}, None),
        ([QueuedJob("x", {"cpu": 1})], {"a": [1.0, 5.0], "b": [1.0, 40.0, 60.0]}, 10),
    ],
)
def test_everybody_ends_as_such_jobs_used_to(
    waiting: list[QueuedJob], history: dict[str, list[float]], at: int | None
) -> None:
    line = QueueSnapshot({"cpu": 0}, TWO_RUN, waiting)
    estimate = simulate(line, history, 10 * SECOND)
    assert (None if estimate is None else estimate.at // SECOND) == at


WAITS, RUNS = UnfinishedJob("a", None), UnfinishedJob("a", 0)


@pytest.mark.parametrize(
    ("jobs", "history", "at"),
    [
        ([RUNS], {"a": [30.0]}, 30),
        ([RUNS, WAITS], {"a": [30.0]}, 60),
        ([RUNS, RUNS, WAITS, WAITS], {"a": [30.0]}, 60),
        ([RUNS, UnfinishedJob("b", 0)], {"a": [30.0], "b": [90.0]}, 90),
        ([RUNS], {"a": [5.0]}, 10),
        ([WAITS], {"a": [30.0]}, None),
        ([RUNS], {}, None),
    ],
)
def test_jobs_end_as_such_jobs_used_to_as_many_at_a_time_as_now(
    jobs: list[UnfinishedJob], history: dict[str, list[float]], at: int | None
) -> None:
    estimate = end_of_all(jobs, history, 10 * SECOND)
    assert (None if estimate is None else estimate.at // SECOND) == at


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", ([], 0)),
        (b"one\ntwo\n", (["one", "two"], 0)),
        (b"a\nb\nc\nd\n", (["b", "c", "d"], 0)),
        (b"1%\r2%\r100%\ndone", (["100%", "done"], 2)),
        (b"\r1%\r\r2%\r\n\nover\r\n", (["2%", "", "over"], 1)),
    ],
)
def test_of_a_progress_bar_the_last_frame_is_kept_and_the_others_counted(
    data: bytes, shown: tuple[list[str], int]
) -> None:
    assert last_frames(data, 3) == shown
