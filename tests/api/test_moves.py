"""Putting a job right before another one, over the API."""

from pathlib import Path

import pytest
from tests.support.calling import Api, play


async def three_jobs(api: Api) -> None:
    await api.post("/pause", {})
    await api.post("/jobs", {"jobs": [{"command": ["x"]}] * 3})


def test_a_job_is_put_before_another(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await three_jobs(api)
        answer = await api.post("/jobs/edit", {"select": ["3"], "before": 2})
        assert answer.document["jobs"] == [3]
        shown = (await api.get("/jobs?order=display")).document["jobs"]
        assert [one["id"] for one in shown] == [1, 3, 2]

    play(tmp_path, story)


def test_who_may_not_change_the_jobs_of_others_may_not(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await three_jobs(api)
        token = await api.new_token("submit")
        body = {"select": ["3"], "before": 2}
        answer = await api.remote("POST", "/jobs/edit", body, token)
        assert (answer.status, answer.document["code"]) == (403, "forbidden")

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"before": 2, "priority": 1}, "usage"),
        ({"before": 2, "first": True}, "usage"),
        ({"before": "x"}, "usage"),
        ({"before": 99}, "refused"),
        ({"before": 3}, "refused"),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, more: dict[str, object], code: str
) -> None:
    async def story(api: Api) -> None:
        await three_jobs(api)
        answer = await api.post("/jobs/edit", {"select": ["3"], **more})
        assert answer.document["code"] == code

    play(tmp_path, story)
