"""Every route of the table over the web server: who is refused, and by what."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.browsing import A_LINK, HOST, OF_THE_PAGE, ORIGIN, Headers, ask
from tests.support.calling import Api, play

from grass.api.access.browser_checks import SAFE
from grass.api.access.web_sessions import Sessions, WebSession
from grass.api.app import ENDPOINTS
from grass.api.openapi import Endpoint
from grass.api.server.web_app import OTHERS, WebApp
from grass.api.server.web_apps import on_loopback
from grass.config import API_PREFIX
from grass.model.access import Right

KEY = bytes(range(32))
FAR = 2**40
OWNER = WebSession("uid:0", "admin", FAR)


def cookie(session: WebSession, key: bytes = KEY) -> str:
    sessions = Sessions(key)
    return f"{Sessions(KEY).cookie}={sessions.sealed(session)}"


GOOD = {
    "host": HOST,
    "origin": ORIGIN,
    "cookie": cookie(OWNER),
    "content-type": "application/json",
    **OF_THE_PAGE,
}
"""What the page itself sends."""


def path_of(one: Endpoint) -> str:
    return API_PREFIX + one.path.format(id="nonsense", unit="0", name="nobodys")


def visiting(folder: Path, story: Callable[[Api, WebApp], Awaitable[None]]) -> None:
    """Run a broker behind a web server."""

    async def inside(api: Api) -> None:
        await story(api, on_loopback(api.app, Sessions(KEY), "127.0.0.1"))

    play(folder, inside)


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in GOOD.items() if name not in names}


value = Sessions(KEY).sealed(OWNER)
NOT_LOGGED_IN = {
    "no cookie": "",
    "an empty one": f"{Sessions(KEY).cookie}=",
    "nonsense": f"{Sessions(KEY).cookie}=nonsense.nonsense",
    "odd letters": f"{Sessions(KEY).cookie}=ä.ö",
    "another content": f"{Sessions(KEY).cookie}=e{value}",
    "no signature": f"{Sessions(KEY).cookie}={value.partition('.')[0]}.",
    "another key": cookie(OWNER, bytes(32)),
    "another name": f"grass={value}",
    "too old": cookie(WebSession("uid:0", "admin", 1)),
    "of a token": cookie(WebSession("token:ada", "admin", FAR, "ada", "00" * 32)),
}


@pytest.mark.parametrize("shown", NOT_LOGGED_IN)
def test_without_a_valid_cookie_no_route_answers(tmp_path: Path, shown: str) -> None:
    async def story(api: Api, app: WebApp) -> None:
        headers = {**GOOD, "cookie": NOT_LOGGED_IN[shown]}
        for one in ENDPOINTS:
            answer = await ask(app, one.method, path_of(one), headers, b"{}")
            assert (answer.status, one.path) == (401, one.path)
            assert answer.document["code"] == "unauthorized"
        for path in ("/", "/index.html", "/jobs/1", "/api/v1/openapi.json", "/api"):
            assert (await ask(app, "GET", path, headers)).status == 401

    visiting(tmp_path, story)


REFUSED: dict[str, Headers] = {
    "a Host that another site chose": GOOD | {"host": "evil.example:4004"},
    "a Host that begins like ours": GOOD | {"host": "127.0.0.1.evil.example:4004"},
    "the number of another machine": GOOD | {"host": "192.0.2.1:4004"},
    "no Host": without("host"),
    "two Hosts": [("host", HOST), *GOOD.items()],
    "the Origin of another site": GOOD | {"origin": "https://evil.example"},
    "the Origin of another port": GOOD | {"origin": "http://127.0.0.1:8888"},
    "the Origin of another scheme": GOOD | {"origin": f"https://{HOST}"},
    "no Origin that is told": GOOD | {"origin": "null"},
    "a page of another site": GOOD | {"sec-fetch-site": "cross-site"},
    "a page of another port": GOOD | {"sec-fetch-site": "same-site"},
    "a link on another site": GOOD | A_LINK | {"sec-fetch-site": "cross-site"},
}


@pytest.mark.parametrize("how", REFUSED)
def test_a_request_from_elsewhere_is_refused_by_every_route(
    tmp_path: Path, how: str
) -> None:
    async def story(api: Api, app: WebApp) -> None:
        before = (await api.get("/events")).body
        for one in ENDPOINTS:
            answer = await ask(app, one.method, path_of(one), REFUSED[how], b"{}")
            assert (answer.status, one.path) == (403, one.path)
            assert answer.document["code"] == "forbidden"
        assert (await api.get("/events")).body == before

    visiting(tmp_path, story)


def test_what_changes_something_has_to_say_where_it_comes_from(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        silent = without("origin", "sec-fetch-site")
        typed = silent | {"sec-fetch-site": "none"}
        for one in ENDPOINTS:
            for headers in (silent, typed):
                if one.method in SAFE:
                    continue
                answer = await ask(app, one.method, path_of(one), headers, b"{}")
                assert (answer.status, one.path) == (403, one.path)
        alone = silent | {"sec-fetch-site": "same-origin"}
        answer = await ask(app, "POST", "/api/v1/pause", alone, b"{}")
        assert answer.status == 200

    visiting(tmp_path, story)


def test_a_form_changes_nothing(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            form = GOOD | {"content-type": kind}
            answer = await ask(app, "POST", "/api/v1/pause", form, b"{}")
            assert (answer.status, answer.document["code"]) == (400, "usage")
        plain = GOOD | {"content-type": "application/json; charset=utf-8"}
        assert (await ask(app, "POST", "/api/v1/pause", plain, b"{}")).status == 200

    visiting(tmp_path, story)


@pytest.mark.parametrize("role", ["read", "submit", "operate"])
def test_a_role_is_refused_what_it_may_not_do(tmp_path: Path, role: str) -> None:
    may = {
        "read": {Right.READ},
        "submit": {Right.READ, Right.SUBMIT},
        "operate": {Right.READ, Right.SUBMIT, Right.OPERATE},
    }[role]

    async def story(api: Api, app: WebApp) -> None:
        headers = GOOD | {"cookie": cookie(WebSession("uid:0", role, FAR))}
        before = (await api.get("/events")).body
        refused = [
            one for one in ENDPOINTS if one.right and not {one.right, one.own} & may
        ]
        assert refused
        for one in refused:
            answer = await ask(app, one.method, path_of(one), headers, b"{}")
            assert (answer.status, one.path) == (403, one.path)
            assert f"the role `{role}`" in answer.document["detail"]
        assert (await api.get("/events")).body == before
        told = (await ask(app, "GET", "/api/v1/session", headers)).document
        assert (told["actor"], told["role"]) == ("uid:0", role)
        assert told["rights"] == sorted(may, key=list(Right).index)

    visiting(tmp_path, story)


def test_the_owner_has_all_rights_but_is_no_machine(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        session = (await ask(app, "GET", "/api/v1/session", GOOD)).document
        assert session["rights"] == ["read", "submit", "operate", "admin"]
        assert session["home_kind"] == "broker"
        guest = await ask(app, "POST", "/api/v1/guests", GOOD, b'{"ticks":1}')
        assert guest.status == 409
        named = await ask(app, "POST", "/api/v1/guests", GOOD, b'{"ticks":1,"pid":9}')
        assert named.status == 409

    visiting(tmp_path, story)


def test_a_page_opens_no_further_web_server(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        for method in ("POST", "DELETE"):
            answer = await ask(app, method, "/api/v1/web", GOOD, b"{}")
            assert (answer.status, answer.document["code"]) == (409, "refused")

    visiting(tmp_path, story)


def test_a_process_of_another_user_is_refused_whatever_it_shows(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        for path in ("/", "/login", "/api/v1/overview"):
            answer = await ask(app, "GET", path, GOOD, state={OTHERS: True})
            assert answer.status == 403
            assert "another user" in answer.document["detail"]

    visiting(tmp_path, story)


def test_a_link_logs_in_once(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        token = app.sessions.new_one_time("uid:0", "read", time.time())
        ahead = await ask(app, "HEAD", f"/login?token={token}", {"host": HOST})
        assert (ahead.status, "set-cookie" in ahead.headers) == (200, False)
        first = await ask(app, "GET", f"/login?token={token}", {"host": HOST})
        assert (first.status, first.headers["location"]) == (303, "/")
        flags = first.headers["set-cookie"].lower()
        assert "httponly" in flags
        assert "samesite=strict" in flags
        assert "path=/" in flags
        shown = {"host": HOST, "cookie": first.cookie}
        assert (await ask(app, "GET", "/api/v1/session", shown)).status == 200
        again = await ask(app, "GET", f"/login?token={token}", {"host": HOST, **A_LINK})
        assert again.status == 401
        assert "set-cookie" not in again.headers
        assert b"used already" in again.body

    visiting(tmp_path, story)


def test_a_link_works_under_no_other_name(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        token = app.sessions.new_one_time("uid:0", "read", time.time())
        elsewhere = {"host": "evil.example", **A_LINK}
        answer = await ask(app, "GET", f"/login?token={token}", elsewhere)
        assert answer.status == 403

    visiting(tmp_path, story)


@pytest.mark.parametrize("host", ["localhost:4004", "[::1]:4004", "LOCALHOST", HOST])
def test_the_names_of_loopback_are_taken_with_any_port(
    tmp_path: Path, host: str
) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        headers = GOOD | {"host": host, "origin": f"http://{host}"}
        answer = await ask(app, "POST", "/api/v1/pause", headers, b"{}")
        assert answer.status == 200

    visiting(tmp_path, story)


def test_a_logout_takes_the_cookie_away(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        answer = await ask(app, "POST", "/logout", GOOD)
        assert (answer.status, answer.headers["location"]) == (303, "/login")
        assert "Max-Age=0" in answer.headers["set-cookie"]
        from_elsewhere = GOOD | {"origin": "https://evil.example"}
        assert (await ask(app, "POST", "/logout", from_elsewhere)).status == 403
        assert (await ask(app, "GET", "/logout", without("cookie"))).status == 401

    visiting(tmp_path, story)


def test_a_person_without_a_cookie_gets_a_page_to_log_in(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        for headers in (A_LINK, {"accept": "text/html"}):
            answer = await ask(app, "GET", "/jobs/4", {"host": HOST, **headers})
            assert (answer.status, b"grass web" in answer.body) == (401, True)
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; style-src 'sha256-")
        posted = await ask(app, "POST", "/login", GOOD, b"token=ada.secret")
        assert posted.status == 403

    visiting(tmp_path, story)


def test_a_link_from_another_site_looks_again_with_the_cookie(tmp_path: Path) -> None:
    async def story(_api: Api, app: WebApp) -> None:
        from_elsewhere = {"host": HOST, **A_LINK, "sec-fetch-site": "cross-site"}
        first = await ask(app, "GET", "/jobs/4", from_elsewhere)
        assert (first.status, b'http-equiv="refresh"' in first.body) == (200, True)
        again = {"host": HOST, **A_LINK, "sec-fetch-site": "same-origin"}
        assert (await ask(app, "GET", "/jobs/4", again)).status == 401
        again["cookie"] = GOOD["cookie"]
        page = await ask(app, "GET", "/jobs/4", again)
        assert (page.status, page.headers["content-type"][:9]) == (200, "text/html")

    visiting(tmp_path, story)


def test_nothing_of_the_api_is_ever_shown_as_a_page(tmp_path: Path) -> None:
    async def story(api: Api, app: WebApp) -> None:
        for path in ("/api/v1/overview", "/api/v1/nowhere", "/api/v1/openapi.json"):
            answer = await ask(app, "GET", path, GOOD)
            policy = answer.headers["content-security-policy"]
            assert policy == "default-src 'none'; sandbox; frame-ancestors 'none'"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"

    visiting(tmp_path, story)
