"""Every route for every role, and for nobody: what a token may do, and no more."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.building import WORKER
from tests.support.calling import Answer, Api, play

from grass.api.app import ENDPOINTS
from grass.api.openapi import Endpoint
from grass.model.access import ROLES, Right

ROUTES = [f"{one.method} {one.path}" for one in ENDPOINTS]

ALLOWED = {
    "GET /overview": "read submit operate admin machine broker",
    "POST /jobs": "submit operate admin machine broker",
    "POST /jobs/plan": "submit operate admin machine broker",
    "GET /jobs": "read submit operate admin machine broker",
    "GET /jobs/export": "read submit operate admin machine broker",
    "POST /jobs/select": "read submit operate admin machine broker",
    "POST /jobs/estimate": "read submit operate admin machine broker",
    "POST /jobs/cancel": "submit operate admin machine broker",
    "POST /jobs/hold": "submit operate admin machine broker",
    "POST /jobs/release": "submit operate admin machine broker",
    "POST /jobs/rerun": "submit operate admin machine broker",
    "POST /jobs/edit": "submit operate admin machine broker",
    "POST /jobs/suspend": "submit operate admin machine broker",
    "POST /jobs/continue": "submit operate admin machine broker",
    "POST /jobs/signal": "submit operate admin machine broker",
    "POST /jobs/remove": "submit operate admin machine broker",
    "POST /jobs/prune": "operate admin",
    "POST /jobs/wait": "read submit operate admin machine broker",
    "POST /jobs/wait-all": "read submit operate admin machine broker",
    "POST /jobs/results": "read submit operate admin machine broker",
    "GET /jobs/{id}": "read submit operate admin machine broker",
    "GET /jobs/{id}/explain": "read submit operate admin machine broker",
    "GET /jobs/{id}/output": "read submit operate admin machine broker",
    "GET /jobs/{id}/result": "read submit operate admin machine broker",
    "GET /jobs/{id}/lines": "read submit operate admin machine broker",
    "GET /jobs/{id}/search": "read submit operate admin machine broker",
    "POST /jobs/{id}/input": "submit operate admin machine broker",
    "POST /guests": "submit operate admin machine broker",
    "POST /guests/{id}/wait": "submit operate admin machine broker",
    "POST /guests/{id}/measured": "submit operate admin machine broker",
    "POST /guests/{id}/end": "submit operate admin machine broker",
    "POST /jobs/{id}/inner-type": "submit operate admin machine broker",
    "GET /jobs/{id}/usage": "read submit operate admin machine broker",
    "POST /blobs/missing": "submit operate admin machine broker",
    "PUT /blobs/{name}": "submit operate admin machine broker",
    "GET /queues/{name}": "read submit operate admin machine broker worker",
    "PUT /queues/{name}": "operate admin machine broker worker",
    "PATCH /queues/{name}": "operate admin machine broker worker",
    "DELETE /queues/{name}": "operate admin machine broker worker",
    "POST /capacity/add": "operate admin machine broker worker",
    "POST /capacity/remove": "operate admin machine broker worker",
    "POST /drain": "operate admin machine broker worker",
    "POST /pause": "operate admin",
    "POST /resume": "operate admin machine broker worker",
    "GET /workers": "read submit operate admin machine broker worker",
    "GET /devices": "read submit operate admin machine broker worker",
    "GET /workers/{name}/gpus/{unit}/usage": "read submit operate admin machine broker",
    "POST /workers/{name}/drain": "operate admin",
    "POST /workers/{name}/foreign/end": "admin",
    "POST /workers/{name}/foreign/keep": "admin",
    "DELETE /workers/{name}": "admin",
    "GET /profiles": "read submit operate admin machine broker",
    "GET /profiles/export": "read submit operate admin machine broker",
    "POST /profiles/import": "operate admin",
    "POST /profiles/forget": "operate admin",
    "GET /events": "read submit operate admin machine broker",
    "GET /events/stream": "read submit operate admin machine broker",
    "GET /stream": "read submit operate admin machine broker",
    "GET /timeline": "read submit operate admin machine broker",
    "GET /doctor": "read submit operate admin machine broker",
    "GET /config": "read submit operate admin machine broker",
    "GET /session": "read submit operate admin machine broker",
    "POST /web": "admin",
    "DELETE /web": "admin",
    "POST /daemon/stop": "admin",
    "GET /brokers": "read submit operate admin machine broker",
    "GET /pools": "read submit operate admin machine broker",
    "POST /pools": "admin",
    "POST /pools/script": "admin",
    "POST /pools/{name}/pause": "operate admin",
    "POST /pools/{name}/resume": "operate admin",
    "POST /pools/{name}/pilots": "operate admin",
    "GET /pools/{name}/script": "read submit operate admin machine broker",
    "GET /pools/{name}/logs": "operate admin",
    "DELETE /pilots/{name}": "operate admin",
    "DELETE /pools/{name}": "admin",
    "GET /tokens": "admin",
    "POST /tokens": "admin",
    "DELETE /tokens/{name}": "admin",
    "POST /join": "read submit operate admin machine broker worker nobody",
}
"""Written out, and not worked out from the table that it checks."""

STREAMS = {"GET /events/stream"}


def endpoint(route: str) -> Endpoint:
    return ENDPOINTS[ROUTES.index(route)]


async def ask(api: Api, route: str, token: str | None) -> Answer:
    """Ask with a body that means nothing: whoever may ask is told so, and no more."""
    method, _, path = route.partition(" ")
    path = path.format(id="nonsense", unit="0", name="nobodys")
    call = api.remote_beginning if route in STREAMS else api.remote
    return await call(method, path, {"nonsense": True}, token)


def was_let_in(answer: Answer) -> bool:
    return answer.status not in (401, 403)


def test_every_route_is_in_the_table() -> None:
    assert list(ALLOWED) == ROUTES


@pytest.mark.parametrize("role", ROLES)
def test_a_role_reaches_its_routes_and_no_other(tmp_path: Path, role: str) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token(role)
        api.broker.state.tokens[role].worker = WORKER
        before = snapshot(api)
        for route in ROUTES:
            answer = await ask(api, route, token)
            wanted = role in ALLOWED[route].split()
            assert was_let_in(answer) == wanted, (route, answer)
            if not wanted:
                assert answer.status == 403
                assert answer.document["code"] == "forbidden"
                assert f"the role `{role}`" in answer.document["detail"]
                assert "this needs the right `" in answer.document["detail"]
        assert snapshot(api) == before

    play(tmp_path, story)


WRONG_TOKENS = {
    "none": None,
    "empty": "",
    "a name alone": "admin",
    "an empty secret": "admin.",
    "a wrong secret": "admin.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "an unknown name": "nobody.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "no name": ".AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "only zeros": "." + "\0" * 32,
    "odd letters": "admin.é\xff",
    "very long": "admin." + "A" * 50_000,
}


@pytest.mark.parametrize("shown", WRONG_TOKENS)
def test_without_a_token_that_counts_nothing_is_told(
    tmp_path: Path, shown: str
) -> None:
    async def story(api: Api) -> None:
        await api.new_token("admin")
        before = snapshot(api)
        for route in ROUTES:
            answer = await ask(api, route, WRONG_TOKENS[shown])
            if route != "POST /join":
                assert answer.status == 401, route
                assert answer.document["code"] == "unauthorized"
        for path in ("/openapi.json", "/nowhere", "/jobs/1/nowhere"):
            answer = await api.remote("GET", path, {}, WRONG_TOKENS[shown])
            assert answer.status == 401
        assert snapshot(api) == before

    play(tmp_path, story)


def test_a_token_counts_no_more_once_it_is_revoked_or_expired(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token("read")
        assert (await api.remote("GET", "/overview", {}, token)).status == 200
        await api.send("DELETE", "/tokens/read", b"")
        assert (await api.remote("GET", "/overview", {}, token)).status == 401
        again = await api.new_token("read")
        assert (await api.remote("GET", "/overview", {}, token)).status == 401
        assert (await api.remote("GET", "/overview", {}, again)).status == 200
        api.broker.state.tokens["read"].expires_at = 1
        assert (await api.remote("GET", "/overview", {}, again)).status == 401

    play(tmp_path, story)


def test_a_code_is_no_token(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        issued = (await api.post("/tokens", {"role": "admin"})).document
        for token in (issued["code"], f"{issued['name']}.{issued['code']}"):
            assert (await api.remote("GET", "/overview", {}, token)).status == 401

    play(tmp_path, story)


EITHER = [
    ("/resume", {"queue": "default"}, "submit", "work"),
    ("/resume", {"unit": "cpu:0"}, "submit", "work"),
    ("/drain", {"unit": "cpu:0"}, "read", "work"),
    ("/jobs/cancel", {"select": ["1"]}, "read", "submit"),
]


@pytest.mark.parametrize(("path", "body", "role", "own"), EITHER)
def test_where_either_of_two_rights_would_do_both_are_named(
    tmp_path: Path, path: str, body: dict[str, Any], role: str, own: str
) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token(role)
        told = (await api.remote("POST", path, body, token)).document["detail"]
        assert told.startswith(f"this needs the right `operate`, or `{own}` for ")
        assert told.endswith(f"; the role `{role}` has neither")

    play(tmp_path, story)


@pytest.mark.parametrize("role", ["worker", "machine"])
def test_who_has_one_of_two_rights_is_told_of_the_other(
    tmp_path: Path, role: str
) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token(role)
        asked = await api.remote("POST", "/resume", {"queue": "default"}, token)
        needed = f"this needs the right `operate`, which the role `{role}` does not"
        assert needed in asked.document["detail"]

    play(tmp_path, story)


VERBS = [
    *("cancel", "hold", "edit", "rerun", "release", "suspend", "continue", "signal"),
    "remove",
]
MORE: dict[str, dict[str, Any]] = {"edit": {"priority": 3}, "signal": {"signal": 10}}


def body_of(verb: str, *select: str) -> dict[str, Any]:
    return {"select": list(select), **MORE.get(verb, {})}


@pytest.mark.parametrize("verb", VERBS)
def test_a_submitter_acts_on_its_own_jobs_alone(tmp_path: Path, verb: str) -> None:
    async def story(api: Api) -> None:
        mine, other = await api.new_token("submit"), await api.new_token("machine")
        jobs = {"jobs": [{"command": "x", "hold": True}]}
        assert (await api.remote("POST", "/jobs", jobs, mine)).status == 200
        assert (await api.remote("POST", "/jobs", jobs, other)).status == 200
        assert (await api.post("/jobs", jobs)).status == 200
        if verb in ("rerun", "remove"):
            await api.post("/jobs/cancel", {"select": ["all"]})
        before = snapshot(api)
        for select in ("2", "3", "2-3"):
            refused = await api.remote(
                "POST", f"/jobs/{verb}", body_of(verb, select), mine
            )
            assert refused.status == 403
            assert "not yours" in refused.document["detail"]
            assert "`operate`" in refused.document["detail"]
        assert snapshot(api) == before
        done = await api.remote("POST", f"/jobs/{verb}", body_of(verb, "1-3"), mine)
        told = "2 jobs are not yours and left alone"
        if verb in ("hold", "suspend", "continue", "signal"):
            assert done.document["warnings"][0] == told
        else:
            assert done.status == 200
            assert done.document["warnings"] == [told]
            assert done.document["jobs"] in ([1], 1)
        left = (await api.get("/jobs?order=oldest")).document["jobs"]
        untouched = {"cancelled"} if verb in ("rerun", "remove") else {"held"}
        assert {one["state"] for one in left if one["id"] != 1} == untouched

    play(tmp_path, story)


def test_a_submitter_gives_input_to_its_own_jobs_alone(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        mine, other = await api.new_token("submit"), await api.new_token("machine")
        jobs = {"jobs": [{"command": "x", "hold": True, "stdin": "pipe"}]}
        assert (await api.remote("POST", "/jobs", jobs, mine)).status == 200
        piece = {"sender": "me", "offset": 0, "data": "aGk="}
        refused = await api.remote("POST", "/jobs/1/input", piece, other)
        assert (refused.status, refused.document["code"]) == (403, "forbidden")
        await api.post("/jobs/cancel", {"select": ["1"]})
        late = await api.remote("POST", "/jobs/1/input", piece, mine)
        assert late.document == {"offset": 0, "closed": True}
        for wrong in (
            {"offset": -1},
            {"data": "A" * 100_000},
            {"data": "?"},
            {"sender": ""},
            {"window": [0, 1]},
            {"window": [1]},
        ):
            asked = await api.remote("POST", "/jobs/1/input", piece | wrong, mine)
            assert (asked.status, wrong) == (400, wrong)

    play(tmp_path, story)


def test_an_operator_acts_on_all_jobs(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token("operate")
        await api.post("/jobs", {"jobs": [{"command": "x", "hold": True}] * 2})
        done = await api.remote("POST", "/jobs/cancel", {"select": ["all"]}, token)
        assert done.document["jobs"] == [1, 2]
        events = (await api.get("/events?kind=cancelled")).document["events"]
        assert {one["actor"] for one in events} == {"token:operate"}

    play(tmp_path, story)


OWN: list[tuple[str, str, dict[str, Any]]] = [
    ("PUT", "/queues/mine", {"capacity": "{cpu:1}"}),
    ("PATCH", "/queues/mine", {"max_running": 3}),
    ("POST", "/capacity/add", {"capacity": "{printer:1}"}),
    ("POST", "/drain", {"unit": "printer:0"}),
    ("POST", "/resume", {"unit": "printer:0"}),
    ("POST", "/capacity/remove", {"unit": "printer:0"}),
    ("DELETE", "/queues/mine", {}),
]


def as_machine(
    role: str, story: Callable[[Api, str], Awaitable[None]]
) -> Callable[[Api], Awaitable[None]]:
    """Tell a story with the token of the one worker there is."""

    async def with_token(api: Api) -> None:
        token = await api.new_token(role)
        api.broker.state.tokens[role].worker = WORKER
        await story(api, token)

    return with_token


@pytest.mark.parametrize("role", ["worker", "machine"])
def test_a_machine_changes_its_own_views_and_units(tmp_path: Path, role: str) -> None:
    async def story(api: Api, token: str) -> None:
        for method, path, body in OWN:
            answer = await api.remote(method, path, body, token)
            assert answer.status == 200, (path, answer.document)

    play(tmp_path, as_machine(role, story))


OTHERS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/capacity/add", {"capacity": "{printer:1}", "worker": "other"}),
    ("POST", "/drain", {"unit": "cpu:0", "worker": "other"}),
    ("POST", "/drain", {"unit": "cpu:0", "worker": "nobody"}),
    ("POST", "/resume", {"unit": "cpu:0", "worker": "other"}),
    ("POST", "/capacity/remove", {"unit": "cpu:0", "worker": "other"}),
    ("POST", "/resume", {}),
    ("POST", "/resume", {"queue": "default"}),
    ("PATCH", "/queues/default", {"max_running": 1}),
    ("PATCH", "/queues/shared", {"max_running": 1}),
    ("PATCH", "/queues/shared", {"default_require": "{cpu:1}"}),
    ("PUT", "/queues/shared", {"max_fails": 1}),
]


@pytest.mark.parametrize("role", ["worker", "machine"])
def test_a_machine_changes_nothing_of_others(tmp_path: Path, role: str) -> None:
    async def story(api: Api, token: str) -> None:
        await api.add_worker("other", "{cpu:1}")
        await api.put("/queues/shared", {"capacity": "{cpu:1}"})
        shared = api.broker.state.queues["shared"]
        shared.views = {"other": shared.views.pop(WORKER)}
        for method, path, body in OTHERS:
            answer = await api.remote(method, path, body, token)
            assert answer.status == 403, (path, body, answer.document)
        joined = await api.remote("PUT", "/queues/shared", {}, token)
        assert joined.status == 200
        shared = api.broker.state.queues["shared"]
        assert set(shared.views) == {"other", WORKER}

    play(tmp_path, as_machine(role, story))


@pytest.mark.parametrize(("role", "seen"), [("worker", 1), ("machine", 2)])
def test_a_worker_that_may_not_read_sees_itself_alone(
    tmp_path: Path, role: str, seen: int
) -> None:
    async def story(api: Api, token: str) -> None:
        await api.add_worker("other", "{cpu:1}")
        answer = await api.remote("GET", "/workers", {}, token)
        assert len(answer.document["workers"]) == seen
        assert answer.document["workers"][0]["id"] == WORKER

    play(tmp_path, as_machine(role, story))


def test_a_machine_without_a_worker_has_no_views(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token("machine")
        answer = await api.remote("PUT", "/queues/q", {}, token)
        assert answer.status == 403
        assert "belongs to no worker yet" in answer.document["detail"]

    play(tmp_path, story)


SECRET = "do-not-show-this"


def test_readers_see_no_environment_and_no_secret(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        token = await api.new_token("read")
        env = {"KEY": SECRET}
        body = {"command": ["echo"], "env": env, "directory": "/"}
        await api.put("/queues/q", body)
        jobs = [{"command": ["A=" + SECRET, "x"], "env": env, "hold": True}]
        await api.post("/jobs", {"jobs": jobs, "environment": env})
        await api.post("/jobs/edit", {"select": ["1"], "env": {"KEY": SECRET + "2"}})
        hashes = [one.hash.hex() for one in api.broker.state.tokens.values()]
        for one in ENDPOINTS:
            readable = one.right is Right.READ and one.method == "GET"
            if readable and f"GET {one.path}" not in STREAMS:
                path = one.path.format(id=1, name="q", unit="0")
                answer = await api.remote("GET", path, {}, token)
                shown = answer.body.decode()
                for secret in (SECRET, token.partition(".")[2], *hashes):
                    assert secret not in shown, path

    play(tmp_path, story)


def test_settings_that_are_commands_are_the_administrators(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        context = api.app.state.context
        settings = context.settings
        shown = [
            one._replace(value=SECRET) if one.name == "notify.on_fail" else one
            for one in settings.sources
        ]
        told = settings._replace(sources=tuple(shown))
        api.app.state.context = context._replace(settings=told)
        for role, wanted in (("read", False), ("admin", True)):
            token = await api.new_token(role)
            answer = await api.remote("GET", "/config", {}, token)
            assert (SECRET in answer.body.decode()) == wanted

    play(tmp_path, story)


def snapshot(api: Api) -> object:
    """What a call that was refused must not have changed."""
    state = api.broker.state
    jobs = {job.id: (job.state, job.priority) for job in state.jobs.values()}
    queues = sorted(state.queues)
    return state.last_job, jobs, queues, sorted(state.tokens), state.paused
