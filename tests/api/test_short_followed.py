"""Following a job that is over before anybody has looked at it twice."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.api.farm import enqueue, joined
from tests.support.calling import Api, play
from tests.support.far_end import FarEnd

from grass.link.messages import Exited, OutputData, ReadOutput, Start, Started

SAID = b"at last\n"


async def answers(worker: FarEnd) -> None:
    """Send what is asked for of the output, for as long as this lasts."""
    while True:
        question = await worker.hears(ReadOutput)
        assert isinstance(question, ReadOutput)
        piece = SAID[question.offset : question.offset + question.length]
        worker.link.send(OutputData(question.stream, piece))


async def begins(api: Api, worker: FarEnd, attempt: str) -> None:
    worker.link.send(Started(attempt, 42, 1_000_000, "/out/1.log", 0))
    while api.broker.state.attempts[1].output is None:
        await api.broker.moved(1)


async def ends(api: Api, worker: FarEnd, attempt: str) -> None:
    worker.link.send(Exited(attempt, 2_000_000, 0, output_bytes=len(SAID)))
    await api.broker.ended([1])


@pytest.mark.parametrize("over_in", [1, 2, 3])
def test_a_job_that_ends_while_it_is_read_is_followed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, over_in: int
) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        await enqueue(api, worker="farm")
        start = await worker.hears(Start)
        assert isinstance(start, Start)
        read, reads = api.broker.read, []

        async def meanwhile(look: Callable[[Any], Any]) -> object:
            """Read the store, in which things are as they were a moment ago."""
            found = await read(look)
            reads.append(found)
            if len(reads) == min(over_in, 2):
                await begins(api, worker, start.attempt)
            if len(reads) == over_in:
                await ends(api, worker, start.attempt)
            return found

        monkeypatch.setattr(api.broker, "read", meanwhile)
        answering = asyncio.ensure_future(answers(worker))
        answer = await api.get("/jobs/1/output?follow=1")
        answering.cancel()
        assert (answer.status, answer.body) == (200, SAID)

    play(tmp_path, story)


def test_an_attempt_that_is_about_to_start_is_waited_for(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api)
        await enqueue(api, worker="farm")
        start = await worker.hears(Start)
        assert isinstance(start, Start)
        path = "/jobs/1/output?follow=1&attempt=1"
        following = asyncio.ensure_future(api.get(path))
        # It has to wait by now.
        for _ in range(10):
            await api.get("/jobs/1")
        await begins(api, worker, start.attempt)
        await ends(api, worker, start.attempt)
        answering = asyncio.ensure_future(answers(worker))
        answer = await following
        answering.cancel()
        assert (answer.status, answer.body) == (200, SAID)

    play(tmp_path, story)
