"""Parameters in a request: an array whose members differ in them."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.calling import Api, play

from grass.link.messages import Exited, Start

ROWS = [["0.1", "8"], ["a b", "16"]]
NAMED = {"names": ["lr", "bs"], "rows": ROWS}
PLACED = {"names": ["1", "2"], "rows": ROWS}


async def enqueue(api: Api, params: dict[str, Any], **fields: Any) -> list[Any]:
    body = {"jobs": [{"command": ["x"], **fields}], "params": params}
    answer = await api.post("/jobs", body)
    assert answer.status == 200, answer.document
    found: list[Any] = (await api.get("/jobs?order=oldest")).document["jobs"]
    return found


def test_each_row_is_a_member_of_one_array_with_its_own_values(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        jobs = await enqueue(
            api, NAMED, command=["x", "{lr}", "{index}"], name="n-{bs}", at_most=1
        )
        assert [job["params"] for job in jobs] == [
            {"lr": "0.1", "bs": "8"},
            {"lr": "a b", "bs": "16"},
        ]
        assert [job["filled_command"] for job in jobs] == [
            ["x", "0.1", "1"],
            ["x", "a b", "2"],
        ]
        assert jobs[0]["command"] == ["x", "{lr}", "{index}"]
        assert [(job["index"], job["array"]) for job in jobs] == [(1, 1), (2, 1)]
        assert [job["name"] for job in jobs] == ["n-8", "n-16"]
        assert len({job.common.spec for job in api.broker.state.jobs.values()}) == 1
        found = await api.get("/jobs?name=n-16")
        assert [job["id"] for job in found.document["jobs"]] == [2]

    play(tmp_path, story)


def test_a_worker_is_told_the_values_and_a_rerun_keeps_them(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await enqueue(api, PLACED, at_most=1, name="n{index}")
        for _ in range(2):
            start = await api.worker.hears(Start)
            assert isinstance(start, Start)
            assert (start.name, start.params) == ("n1", {"1": "0.1", "2": "8"})
            await api.post("/pause", {})
            api.worker.link.send(Exited(start.attempt, 1, 0, placed_at=start.placed_at))
            await api.post("/jobs/wait", {"select": ["1"]})
            await api.post("/jobs/rerun", {"select": ["1"]})
            await api.post("/resume", {})

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("params", "fields", "said"),
    [
        (NAMED, {"array": "1-2"}, "both --array and parameters"),
        ({"names": ["gpu"], "rows": [["1"]]}, {}, "a parameter cannot have"),
        ({"names": ["cpu"], "rows": [["1"]]}, {}, "a parameter cannot have"),
        ({"names": ["id"], "rows": [["1"]]}, {}, "a parameter cannot have the name"),
        ({"names": ["x"], "rows": []}, {}, "no values"),
        ({"names": ["x"], "rows": [["1", "2"]]}, {}, "row 1 has 2 values"),
        ({"names": ["x"], "rows": [[7]]}, {}, "Expected `str`"),
        (PLACED, {"command": "echo '{1}'"}, "`{1}` stands in quotes"),
        (PLACED, {"command": ["x", "{3}"]}, "each job is given 2 values"),
        (PLACED, {"command": ["{1}"], "output": "/x/{4}.log"}, "`{4}` is used, but"),
        (PLACED, {"at_most": 0}, "--at-most must be at least 1"),
        ({"names": ["x"], "rows": [["9" * 140_000]]}, {"command": ["{x}"]}, "too long"),
        (None, {"at_most": 2}, "--at-most goes with --array or :::"),
        (None, {"array": "1-9%3", "at_most": 2}, "both --at-most and %"),
    ],
)
def test_parameters_that_make_no_sense_add_no_job(
    tmp_path: Path, params: dict[str, Any] | None, fields: dict[str, Any], said: str
) -> None:
    async def story(api: Api) -> None:
        body = {"jobs": [{"command": ["x"], **fields}], "params": params}
        answer = await api.post("/jobs", body)
        assert answer.status == 400
        assert said in answer.document["detail"]
        assert not api.broker.state.jobs

    play(tmp_path, story)


def test_parameters_go_with_one_command(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        two = [{"command": ["x"]}, {"command": ["y"]}]
        answer = await api.post("/jobs", {"jobs": two, "params": NAMED})
        assert "parameters go with one command" in answer.document["detail"]

    play(tmp_path, story)


def test_an_edited_command_is_checked_with_the_values(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await enqueue(api, PLACED)
        answer = await api.post("/jobs/edit", {"select": ["2"], "command": "a '{1}'"})
        assert "stands in quotes" in answer.document["detail"]
        for change in ({"command": ["a", "{3}"]}, {"name": "fit-{3}"}):
            answer = await api.post("/jobs/edit", {"select": ["2"], **change})
            assert "`{3}` is used" in answer.document["detail"]
        await api.post("/jobs/edit", {"select": ["2"], "command": "a {1}; b"})
        job = (await api.get("/jobs/2")).document
        assert job["filled_command"] == ["a 'a b'; b"]
        assert job["params"] == {"1": "a b", "2": "16"}

    play(tmp_path, story)
