"""Output of a job that another copy of its worker's home has: nobody else is asked."""

import asyncio
from pathlib import Path

import pytest
from tests.api.farm import cut_off, enqueue, joined, runs_out_of_sight, told
from tests.support.calling import Api, play

from grass.link.messages import Start

ELSEWHERE = "job 1 runs on an unreachable machine that calls itself worker `farm` too"
APART = (503, "unreachable", ELSEWHERE)


@pytest.mark.parametrize("query", ["", "?tail=3", "?follow=1", "?follow=1&attempt=1"])
def test_a_copy_is_not_asked_for_what_the_first_home_has(
    tmp_path: Path, query: str
) -> None:
    async def story(api: Api) -> None:
        await runs_out_of_sight(api, instance="one")
        await joined(api, instance="two")
        answer = await asyncio.wait_for(api.get(f"/jobs/1/output{query}"), 5)
        assert told(answer) == APART
        assert answer.document["hint"] == "`grass explain 1` says what settles that"

    play(tmp_path, story)


def test_a_copy_is_not_waited_for_to_start_what_the_first_home_has(
    tmp_path: Path,
) -> None:
    async def story(api: Api) -> None:
        worker = await joined(api, instance="one")
        await enqueue(api, worker="farm")
        start = await worker.hears(Start)
        assert isinstance(start, Start)
        await cut_off(api, worker)
        await joined(api, instance="two")
        answer = await asyncio.wait_for(api.get("/jobs/1/output?follow=1"), 5)
        assert told(answer) == APART

    play(tmp_path, story)
