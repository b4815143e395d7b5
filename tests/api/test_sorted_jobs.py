"""Jobs in the order of a column, page by page."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.calling import Api, play


async def enqueue(api: Api, *jobs: dict[str, Any]) -> None:
    body = {"jobs": [{"command": ["x"], **one} for one in jobs]}
    assert (await api.post("/jobs", body)).status == 200


def test_pages_go_on_where_they_ended_and_tell_the_total(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api, *({"name": name} for name in ("b", "c", "a")))
        await api.post("/jobs/hold", {"select": ["2"]})
        first = (await api.get("/jobs?order=-name&limit=2")).document
        assert [one["name"] for one in first["jobs"]] == ["c", "b"]
        assert first["total"] == {"held": 1, "queued": 2}
        rest = await api.get(f"/jobs?order=-name&limit=2&cursor={first['next']}")
        assert [one["name"] for one in rest.document["jobs"]] == ["a"]
        assert rest.document["next"] is None

    play(tmp_path, story)


def test_an_order_goes_with_selectors(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api, {"priority": 1}, {"priority": 3}, {"priority": 2})
        answer = await api.get("/jobs?order=-priority&select=1-2")
        assert [one["id"] for one in answer.document["jobs"]] == [2, 1]
        assert answer.document["total"] == {"queued": 2}
        assert (await api.get("/jobs?order=id&select=9")).status == 404

    play(tmp_path, story)


@pytest.mark.parametrize(
    "query", ["order=-", "order=colour", "order=id&cursor=x", "order=id&cursor=W10="]
)
def test_a_bad_question_is_refused(tmp_path: Path, query: str) -> None:
    async def story(api: Api) -> None:
        answer = await api.get(f"/jobs?{query}")
        assert (answer.status, answer.document["code"]) == (400, "usage")

    play(tmp_path, story)
