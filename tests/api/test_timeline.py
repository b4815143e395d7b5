"""The timeline of a broker: what ended, what runs, and what is expected."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.api.explaining import starts
from tests.support.calling import Api, play

from grass.link.messages import Exited

Document = dict[str, Any]


async def enqueue(api: Api, name: str) -> None:
    job = {"command": ["x"], "name": name, "require": {"cpu": 2}}
    assert (await api.post("/jobs", {"jobs": [job]})).status == 200


async def ends(api: Api, attempt: str, ran_s: float) -> None:
    at = time.time_ns() // 1000
    api.worker.link.send(Exited(attempt, at, 0, ran_s=ran_s))
    await api.broker.ended([1])


def hour(ahead: int) -> str:
    at = datetime.now(UTC) + timedelta(hours=ahead)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


async def read(api: Api, query: str = "") -> Document:
    answer = await api.get(f"/timeline?{query}")
    assert answer.status == 200, answer.document
    document: Document = answer.document
    return document


def test_what_ended_what_runs_and_what_is_expected(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        for _ in range(3):
            await enqueue(api, "fit")
        start = await starts(api)
        await ends(api, start.attempt, 600.0)
        await starts(api)
        while api.broker.state.attempts[2].output is None:
            await api.broker.next_commit()
        told = await read(api, f"to={hour(2)}&totals=1")
        assert told["lanes"] == [
            {"worker": "desk", "kind": "cpu", "unit": "", "capacity": 2}
        ]
        now = [one for one in told["bars"] if not one["predicted"]]
        assert [(one["job"], one["state"]) for one in now] == [
            (1, "succeeded"),
            (2, "running"),
        ]
        assert [one["to"] is None for one in now] == [False, True]
        assert {one["amount"] for one in now} == {2}
        soon = [one for one in told["bars"] if one["predicted"]]
        assert [(one["job"], one["state"]) for one in soon] == [
            (2, "running"),
            (3, "queued"),
        ]
        assert soon[0]["to"] <= soon[1]["from"] < soon[1]["to"]
        assert [one["attempts"] for one in told["totals"]] == [2]
        past = await read(api, f"to={hour(-1)}&from={hour(-3)}")
        assert (past["bars"], past["totals"]) == ([], [])
        assert (await read(api, "worker=desk&limit=1"))["left_out"] == 1

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("from=yesterday", 400),
        ("to=12:00", 400),
        ("from=2030-01-01T00:00:00Z&to=2029-01-01T00:00:00Z", 400),
        ("limit=x", 400),
        ("worker=nobody", 404),
    ],
)
def test_what_is_not_understood_is_refused(
    tmp_path: Path, query: str, status: int
) -> None:
    async def story(api: Api) -> None:
        assert (await api.get(f"/timeline?{query}")).status == status

    play(tmp_path, story)
