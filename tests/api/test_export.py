"""Jobs as a table for other programs."""

import csv
import io
import json
from pathlib import Path

import pytest
from tests.support.calling import Api, play

from grass.api.routes import export


async def enqueue(api: Api, *names: str) -> None:
    await api.post("/pause", {})
    body = {"jobs": [{"command": ["x", "a,b"], "name": name} for name in names]}
    assert (await api.post("/jobs", body)).status == 200


HOSTILE = 'a "quoted", name;\\ <b>'


def test_all_jobs_are_rows_whatever_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PAGE", 2)

    async def story(api: Api) -> None:
        await enqueue(api, "one", HOSTILE, "three", "four", "five")
        answer = await api.get("/jobs/export?columns=id,name,command,finished_at")
        assert answer.media_type == "text/csv; charset=utf-8"
        head, *rows = csv.reader(io.StringIO(answer.body.decode()))
        assert head == ["id", "name", "command", "finished_at"]
        assert [row[0] for row in rows] == ["1", "2", "3", "4", "5"]
        assert rows[1] == ["2", HOSTILE, '["x","a,b"]', ""]

    play(tmp_path, story)


FORMULAS = ["=1+1", "+A1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C x'!A0", "-"]
NO_FORMULAS = ["-3", "+1.5e-3", "-.5", "a=1", " =1", "'=1", "1-2"]


def test_no_text_is_run_as_a_formula(tmp_path: Path) -> None:
    values = [*FORMULAS, *NO_FORMULAS]

    async def story(api: Api) -> None:
        await api.post("/pause", {})
        params = {"names": ["lr"], "rows": [[value] for value in values]}
        body = {"jobs": [{"command": ["x"], "priority": -3}], "params": params}
        assert (await api.post("/jobs", body)).status == 200
        asked = "columns=params.lr,priority,=1&order=id"
        answer = await api.get(f"/jobs/export?{asked}")
        head, *rows = csv.reader(io.StringIO(answer.body.decode(), newline=""))
        assert head == ["params.lr", "priority", "'=1"]
        quoted = [f"'{one}" for one in FORMULAS]
        assert rows == [[one, "-3", ""] for one in [*quoted, *NO_FORMULAS]]
        answer = await api.get(f"/jobs/export?format=json&{asked}")
        assert [one["params.lr"] for one in json.loads(answer.body)] == values

    play(tmp_path, story)


@pytest.mark.parametrize("page", [1, 2, 100])
def test_json_is_one_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(export, "PAGE", page)

    async def story(api: Api) -> None:
        await enqueue(api, "one", "two", "three")
        asked = "format=json&columns=name,request.cpu,nothing&order=-name&select=1-2"
        answer = await api.get(f"/jobs/export?{asked}")
        assert json.loads(answer.body) == [
            {"name": "two", "request.cpu": 1, "nothing": None},
            {"name": "one", "request.cpu": 1, "nothing": None},
        ]
        none = await api.get("/jobs/export?format=json&state=failed")
        assert json.loads(none.body) == []

    play(tmp_path, story)


def test_values_of_others_are_hidden(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        await api.post("/pause", {})
        await api.post("/jobs", {"jobs": [{"command": ["A=secret", "x"]}]})
        token = await api.new_token("read")
        answer = await api.remote("GET", "/jobs/export", {}, token)
        assert "A=…" in answer.body.decode()
        assert b"secret" not in answer.body

    play(tmp_path, story)


@pytest.mark.parametrize(
    "query", ["format=xml", "order=colour", f"columns={'a,' * 101}"]
)
def test_a_bad_question_is_refused(tmp_path: Path, query: str) -> None:
    async def story(api: Api) -> None:
        answer = await api.get(f"/jobs/export?{query}")
        assert (answer.status, answer.document["code"]) == (400, "usage")

    play(tmp_path, story)
