"""Bad input and unknown callers: one clear problem document, and nothing happens."""

import json
import os
from pathlib import Path

import pytest
from tests.support.calling import Api, play

from grass.api import app
from grass.api.problem import MEDIA_TYPE
from grass.config import API_PREFIX

WHO = [None, os.geteuid() + 1, 65534]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/jobs", "{", 400, "usage"),
        ("POST", "/jobs", "[]", 400, "usage"),
        ("POST", "/jobs", '{"jobs":[]}', 400, "usage"),
        ("POST", "/jobs", '{"jobs":[{"comand":["x"]}]}', 400, "usage"),
        ("POST", "/jobs", '{"jobs":[{"command":[]}]}', 400, "usage"),
        ("POST", "/jobs", '{"jobs":[{"command":"x","queue":"q"}]}', 404, "not-found"),
        ("POST", "/jobs", '{"jobs":[{"command":"x","require":"{"}]}', 400, "usage"),
        (
            "POST",
            "/jobs",
            '{"jobs":[{"command":"x","require":{"gpu":9}}]}',
            422,
            "never-fits",
        ),
        (
            "POST",
            "/jobs",
            '{"jobs":[{"command":"x","max_output":"1e999999"}]}',
            400,
            "usage",
        ),
        ("POST", "/jobs", '{"jobs":[{"command":"x","max_output":-1}]}', 400, "usage"),
        ("POST", "/jobs", '{"jobs":[{"command":"x"}],"umask":-1}', 400, "usage"),
        (
            "POST",
            "/jobs",
            '{"jobs":[{"command":"x","env":{"A=B":"1"}}]}',
            400,
            "usage",
        ),
        ("POST", "/jobs", "[" * 100_000, 400, "usage"),
        ("POST", "/jobs", '{"jobs":[{"command":"x"}],"key":"\\ud800"}', 400, "usage"),
        ("POST", "/jobs/cancel", '{"select":[]}', 400, "usage"),
        ("POST", "/jobs/cancel", '{"select":["99"]}', 404, "not-found"),
        ("POST", "/jobs/cancel", '{"select":["all"],"signal":99}', 400, "usage"),
        ("POST", "/jobs/cancel", '{"select":["all"],"grace_s":-1}', 400, "usage"),
        ("POST", "/jobs/cancel", '{"select":["all"],"grace_s":NaN}', 400, "usage"),
        ("POST", "/jobs/cancel", '{"select":["@\\ud800"]}', 400, "usage"),
        ("POST", "/jobs/prune", '{"older_s":NaN}', 400, "usage"),
        ("POST", "/jobs/prune", '{"older_s":1e300}', 400, "usage"),
        ("POST", "/jobs/prune", '{"older_s":1e400}', 400, "usage"),
        ("POST", "/jobs/prune", "{}", 400, "usage"),
        ("POST", "/jobs/wait", '{"select":["all"],"timeout_s":1e300}', 400, "usage"),
        ("POST", "/jobs/select", '{"select":[]}', 400, "usage"),
        ("POST", "/jobs/select", '{"select":["nonsense"]}', 400, "usage"),
        ("POST", "/jobs/hold", '{"select":["99"]}', 404, "not-found"),
        ("POST", "/jobs/release", '{"select":["99"]}', 404, "not-found"),
        ("POST", "/jobs/rerun", '{"select":["99"]}', 404, "not-found"),
        ("POST", "/jobs/edit", '{"select":["99"],"priority":1}', 404, "not-found"),
        ("POST", "/jobs/suspend", '{"select":["99"]}', 404, "not-found"),
        ("POST", "/jobs/signal", '{"select":["99"],"signal":10}', 404, "not-found"),
        ("POST", "/jobs/signal", '{"select":["99"],"signal":0}', 400, "usage"),
        ("POST", "/jobs/signal", '{"select":["99"],"signal":19}', 400, "usage"),
        ("POST", "/jobs/continue", '{"select":["last"]}', 404, "not-found"),
        ("POST", "/jobs/remove", '{"select":["9-12"]}', 404, "not-found"),
        ("GET", "/jobs?select=nonsense", "", 400, "usage"),
        ("GET", "/jobs?select=99", "", 404, "not-found"),
        ("GET", "/jobs?" + "&".join(["select=1"] * 201), "", 404, "not-found"),
        ("GET", "/jobs?" + "&".join(["select=all"] * 201), "", 400, "usage"),
        ("POST", "/jobs/hold", json.dumps({"select": ["1"] * 201}), 404, "not-found"),
        ("POST", "/jobs/hold", json.dumps({"select": ["all"] * 201}), 400, "usage"),
        ("GET", "/jobs/99/explain", "", 404, "not-found"),
        ("PATCH", "/queues/nobodys", '{"max_running":1}', 404, "not-found"),
        ("PATCH", "/queues/default", '{"capacity":"{cpu:1}"}', 409, "refused"),
        ("PUT", "/queues/q", '{"max_fails":0}', 400, "usage"),
        ("PUT", "/queues/q", '{"directory":"here"}', 400, "usage"),
        ("GET", "/jobs?limit=x", "", 400, "usage"),
        ("GET", "/jobs?limit=0", "", 400, "usage"),
        ("GET", "/jobs?state=done", "", 400, "usage"),
        ("GET", "/jobs?order=random", "", 400, "usage"),
        ("GET", "/jobs/all", "", 400, "usage"),
        ("GET", "/jobs/nonsense", "", 400, "usage"),
        ("GET", "/overview?queue=nobodys", "", 404, "not-found"),
        ("GET", "/nowhere", "", 404, "not-found"),
        ("DELETE", "/jobs", "", 400, "usage"),
        ("PUT", "/queues/a%20b", "{}", 400, "usage"),
        ("PUT", "/queues/q", '{"capacity":"{gpu:-1}"}', 400, "usage"),
        ("PUT", "/queues/q", '{"max_running":0}', 400, "usage"),
        ("PUT", "/queues/default", "{}", 409, "refused"),
        ("POST", "/pause", '{"queue":"q"}', 404, "not-found"),
    ],
)
def test_bad_input_gets_one_clear_problem(
    tmp_path: Path, method: str, path: str, body: str, status: int, code: str
) -> None:
    async def story(api: Api) -> None:
        answer = await api.send(method, path, body.encode())
        assert (answer.status, answer.document["code"]) == (status, code)
        assert answer.media_type == MEDIA_TYPE
        assert answer.document["detail"]
        assert answer.document["type"] == f"urn:grass:{code}"
        assert api.broker.state.last_job == 0
        assert list(api.broker.state.queues) == ["default"]
        assert (await api.post("/jobs", {"jobs": [{"command": "x"}]})).status == 200

    play(tmp_path, story)


def test_one_bad_job_of_many_is_named_by_its_place(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        jobs = [{"command": "x"}, {"command": "y", "require": "{gpu:}"}]
        answer = await api.post("/jobs", {"jobs": jobs})
        assert answer.document["detail"].startswith("job 2 of 2: --require, line 1")

    play(tmp_path, story)


def test_only_the_owner_and_root_may_call(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        for uid in (uid for uid in WHO if uid != 0):
            for one in app.ENDPOINTS:
                path = one.path.format(id=1, name="q", worker="w", unit="gpu:0")
                answer = await api.send(one.method, path, b"{}", uid=uid)
                assert (answer.status, answer.document["code"]) == (403, "forbidden")
            assert (await api.get("/openapi.json", uid=uid)).status == 403
        assert (await api.get("/overview", uid=0)).status == 200

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("path", "largest"),
    [("/pause", 2**20), ("/jobs/select", 16 * 2**20), ("/jobs", 64 * 2**20)],
)
def test_a_body_beyond_the_limit_of_its_route_is_refused(
    tmp_path: Path, path: str, largest: int
) -> None:
    async def story(api: Api) -> None:
        answer = await api.send("POST", path, b" " * (largest + 1))
        assert (answer.status, answer.document["code"]) == (413, "too-large")
        assert f"larger than {largest} bytes" in answer.document["detail"]
        assert api.app.state.api.bodies.reserved == 0

    play(tmp_path, story)


def test_too_many_jobs_in_one_call_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grass.api.routes.job_calls.MOST_JOBS", 2)

    async def story(api: Api) -> None:
        answer = await api.post("/jobs", {"jobs": [{"command": "x"}] * 3})
        assert "at most 2" in answer.document["hint"]

    play(tmp_path, story)


def test_a_problem_is_plain_json_even_when_it_quotes_odd_bytes(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        answer = await api.post("/jobs/cancel", {"select": ["caf\udce9"]})
        assert answer.status == 400
        assert "caf\udce9" in json.loads(answer.body.decode("ascii"))["detail"]

    play(tmp_path, story)


def test_the_prefix_names_the_version() -> None:
    assert API_PREFIX == "/api/v1"
