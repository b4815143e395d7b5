"""Tokens by the API: made once, told once, exchanged for a code, revoked."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.building import WORKER
from tests.support.calling import TCP_ENDPOINT, Answer, Api, play

from grass.api.tcp_connections import MOST_WRONG, WrongCodes
from grass.broker.shell.new_secrets import new_code
from grass.errors import Refused

NINE = "00000000000000f9"


async def join(api: Api, code: str, worker: str | None = NINE, **more: Any) -> Answer:
    body = {"code": code, "name": "lab", "worker": worker, **more}
    return await api.remote("POST", "/join", body, None)


def test_a_code_becomes_a_token_of_the_machine_s_own(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        issued = (await api.post("/tokens", {})).document
        assert (issued["role"], issued["token"]) == ("machine", None)
        assert len(issued["code"]) == 22
        assert issued["expires_at"] is not None
        joined = (await join(api, issued["code"])).document
        assert joined["name"] == "lab"
        assert joined["role"] == "machine"
        assert joined["cluster"] == api.broker.state.cluster
        name, _, secret = joined["token"].partition(".")
        assert (name, len(secret)) == ("lab", 43)
        seen = await api.remote("GET", "/overview", {}, joined["token"])
        assert seen.status == 200

    play(tmp_path, story)


def test_a_list_tells_everything_but_the_secret(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        code = await new_code(api.broker, "daemon")
        token = (await join(api, code)).document["token"]
        await api.remote("GET", "/overview", {}, token)
        answer = await api.get("/tokens")
        for secret in (code, token.partition(".")[2]):
            assert secret not in answer.body.decode()
        listed = {one["name"]: one for one in answer.document["tokens"]}
        assert set(listed) == {"code", "lab"}
        assert listed["code"]["code"]
        assert listed["code"]["created_by"] == "daemon"
        assert listed["lab"]["worker"] == NINE
        assert listed["lab"]["used_at"] is not None
        assert listed["lab"]["expires_at"] is None

    play(tmp_path, story)


def test_the_use_of_a_token_is_written_down_now_and_then(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token("read")
        for _ in range(3):
            await api.remote("GET", "/overview", {}, token)
        first = api.broker.state.tokens["read"].used_at
        assert first is not None
        api.broker.state.tokens["read"].used_at = first - 3_600_000_001
        await api.remote("GET", "/overview", {}, token)
        now = api.broker.state.tokens["read"].used_at
        assert now is not None
        assert now > first

    play(tmp_path, story)


def test_wrong_and_expired_codes_get_the_same_words(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        code = await new_code(api.broker, "daemon")
        wrong = await join(api, "A" * 22)
        api.broker.state.tokens["code"].expires_at = 1
        expired = await join(api, code)
        assert wrong.status == expired.status == 401
        assert wrong.document == expired.document
        assert sorted(api.broker.state.tokens) == ["code"]

    play(tmp_path, story)


def test_many_wrong_codes_are_made_to_wait(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        for _ in range(MOST_WRONG):
            assert (await join(api, "wrong")).status == 401
        answer = await join(api, "wrong")
        assert (answer.status, answer.document["code"]) == (409, "refused")
        assert "wait a minute" in answer.document["hint"]

    play(tmp_path, story)


def test_wrong_codes_are_counted_by_the_minute_and_the_address() -> None:
    wrong = WrongCodes()
    for _ in range(MOST_WRONG):
        wrong.check("a", 100.0)
        wrong.note("a")
    with pytest.raises(Refused, match="too many wrong codes"):
        wrong.check("a", 159.9)
    wrong.check("b", 159.9)
    wrong.check("a", 160.0)


def test_the_broker_s_own_machine_need_not_join(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        code = await new_code(api.broker, "daemon")
        answer = await join(api, code, WORKER)
        assert answer.status == 409
        assert "is the broker itself" in answer.document["detail"]

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"role": "king"}, "there is no role `king`"),
        ({"name": "a.b"}, "`a.b` cannot name a token"),
        ({"hours": 0}, "the request is not understood"),
        ({"hours": -1}, "the request is not understood"),
        ({"hours": 1e9}, "the request is not understood"),
        ({"rights": []}, "unknown field `rights`"),
    ],
)
def test_a_bad_wish_makes_no_token(
    tmp_path: Path, body: dict[str, Any], told: str
) -> None:
    async def story(api: Api) -> None:
        answer = await api.post("/tokens", body)
        assert answer.status == 400
        assert told in answer.document["detail"]
        assert not api.broker.state.tokens

    play(tmp_path, story)


@pytest.mark.parametrize(
    "body", [{"code": ""}, {"code": "x" * 300}, {"name": ""}, {"worker": "w" * 300}]
)
def test_a_bad_request_to_join_is_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    async def story(api: Api) -> None:
        await new_code(api.broker, "daemon")
        whole = {"code": "x", "name": "lab", "worker": "w", **body}
        answer = await api.remote("POST", "/join", whole, None)
        assert (answer.status, answer.document["code"]) == (400, "usage")

    play(tmp_path, story)


def test_an_unknown_token_cannot_be_revoked(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        answer = await api.send("DELETE", "/tokens/nobody", b"")
        assert (answer.status, answer.document["code"]) == (404, "not-found")

    play(tmp_path, story)


def test_the_overview_has_the_tcp_address(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        told = (await api.get("/overview")).document["daemon"]["tcp"]
        assert told == {"address": TCP_ENDPOINT.address, "pin": TCP_ENDPOINT.pin}
        api.app.state.context = api.app.state.context._replace(tcp=None)
        assert (await api.get("/overview")).document["daemon"]["tcp"] is None

    play(tmp_path, story)


def test_without_a_tcp_server_there_is_nothing_to_join(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        api.app.state.context = api.app.state.context._replace(tcp=None)
        answer = await api.post("/tokens", {})
        assert answer.status == 409
        assert "listens to no other machine" in answer.document["detail"]
        assert not api.broker.state.tokens
        assert await api.new_token("read")

    play(tmp_path, story)


async def used(api: Api, token: str) -> int:
    return (await api.remote("GET", "/overview", {}, token)).status


def test_a_code_gives_nobody_the_token_of_another_s_worker(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        code = await new_code(api.broker, "daemon")
        own = (await join(api, code)).document["token"]
        assert await used(api, own) == 200
        for shown in (None, "lab.nonsense", await api.new_token("worker")):
            body = {"code": code, "name": "thief", "worker": NINE}
            answer = await api.remote("POST", "/join", body, shown)
            assert (answer.status, answer.document["code"]) == (409, "refused")
            assert answer.document["detail"] == "this worker has a token already"
            assert "`grass token revoke lab` first" in answer.document["hint"]
        assert await used(api, own) == 200
        assert "thief" not in api.broker.state.tokens

    play(tmp_path, story)


def test_a_lost_reply_locks_no_machine_out(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        code = await new_code(api.broker, "daemon")
        lost = (await join(api, code)).document["token"]
        own = (await join(api, code)).document["token"]
        assert own.partition(".")[0] == lost.partition(".")[0] == "lab"
        assert [await used(api, one) for one in (lost, own)] == [401, 200]
        body = {"code": code, "name": "lab", "worker": NINE}
        (await api.remote("POST", "/join", body, own)).document["token"]
        assert await used(api, own) == 200
        newest = (await api.remote("POST", "/join", body, own)).document["token"]
        assert [await used(api, one) for one in (own, newest)] == [200, 200]
        assert [await used(api, one) for one in (own, newest)] == [401, 200]

    play(tmp_path, story)


@pytest.mark.parametrize("worker", ["desk", "F" * 16, "bad\x1b[31m\n\tid"])
def test_a_name_does_not_join_as_a_worker_s_id(tmp_path: Path, worker: str) -> None:
    async def story(api: Api) -> None:
        answer = await join(api, await new_code(api.broker, "daemon"), worker)
        assert answer.status == 400
        assert "16 hexadecimal digits" in answer.document["detail"]
        assert sorted(api.broker.state.tokens) == ["code"]

    play(tmp_path, story)


def test_a_name_is_not_given_again_while_its_jobs_are_there(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        code = await new_code(api.broker, "daemon", "submit")
        first = (await join(api, code, None)).document["token"]
        body = {"jobs": [{"command": "x"}], "defaults": {"hold": True}}
        job = (await api.remote("POST", "/jobs", body, first)).document["first"]
        await api.send("DELETE", "/tokens/lab", b"")
        assert (await join(api, code, None)).document["name"] == "lab-2"
        await api.post("/jobs/cancel", {"select": [str(job)]})
        assert job not in api.broker.state.jobs
        assert (await join(api, code, None)).document["name"] == "lab-3"
        named = await api.post("/tokens", {"name": "lab", "code": False})
        assert named.status == 409
        assert "earlier token `lab` has jobs" in named.document["detail"]
        await api.post("/jobs/remove", {"select": [str(job)]})
        assert (await join(api, code, None)).document["name"] == "lab"

    play(tmp_path, story)


def test_who_may_not_look_is_not_told_what_there_is(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token("worker")
        body = {"unit": "cpu:0", "worker": "nobody"}
        for method, path, status in (
            ("POST", "/drain", 403),
            ("GET", "/queues/nothing", 404),
        ):
            told = await api.remote(method, path, body, token)
            assert told.status == status
            assert "desk" not in told.body.decode()
            assert "default" not in told.body.decode()
            reader = await api.new_token("operate")
            assert (await api.remote(method, path, body, reader)).document["hint"]

    play(tmp_path, story)


@pytest.mark.parametrize("role", ["submit", "machine"])
def test_an_array_that_may_pause_a_queue_needs_the_right_to(
    tmp_path: Path, role: str
) -> None:
    async def story(api: Api) -> None:
        token, operator = await api.new_token(role), await api.new_token("operate")
        array = {"command": "x", "array": "1-2", "max_fails": 1}
        for body in (
            {"jobs": [array]},
            {"jobs": [{"command": "x"}], "defaults": {**array, "command": None}},
        ):
            refused = await api.remote("POST", "/jobs", body, token)
            assert (refused.status, refused.document["code"]) == (403, "forbidden")
            assert "--max-fails pauses the queue" in refused.document["detail"]
            assert (await api.remote("POST", "/jobs", body, operator)).status == 200

    play(tmp_path, story)


@pytest.mark.parametrize(
    "asked",
    [
        {"name": "start", "role": "read"},
        {"name": "start", "hours": 2},
        {"name": "start-2"},
    ],
)
def test_nobody_names_a_code_as_that_of_a_start(tmp_path: Path, asked: Any) -> None:
    async def story(api: Api) -> None:
        refused = await api.post("/tokens", asked)
        assert (refused.status, refused.document["code"]) == (400, "usage")
        assert "is what the code of a start is called" in refused.document["detail"]
        await new_code(api.broker, "daemon", name="start")
        made = await api.post("/tokens", {"name": "start-2", "code": False})
        assert made.status == 200
        await new_code(api.broker, "daemon", name="start")
        assert sorted(api.broker.state.tokens) == ["start", "start-2"]

    play(tmp_path, story)


def test_what_is_left_of_a_revoked_token_is_seen_by_nobody(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        code = await new_code(api.broker, "daemon")
        own = (await join(api, code)).document["token"]
        await used(api, own)
        await api.add_worker(NINE, "{cpu:1}")
        api.broker.state.workers[NINE].address = "10.0.0.7"
        await api.send("DELETE", "/tokens/lab", b"")
        listed = (await api.get("/tokens")).document["tokens"]
        assert [one["name"] for one in listed] == ["code"]
        assert await used(api, own) == await used(api, f"former.{own}") == 401
        refused = await join(api, code)
        assert (refused.status, refused.document["code"]) == (409, "refused")
        assert "`grass workers forget " in refused.document["hint"]
        body = {"code": code, "name": "lab", "worker": NINE}
        again = await api.remote("POST", "/join", body, own)
        assert [await used(api, again.document["token"]), again.status] == [200, 200]

    play(tmp_path, story)
