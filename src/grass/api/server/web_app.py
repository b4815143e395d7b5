"""The web application: the dashboard's files, and the API for browsers that logged in.

Every request is checked for where it comes from, and, but for the login, has to have a
valid cookie before anything is answered. Then it is passed on to an API as the caller
that the cookie stands for. What is known of the connection is not passed on, so the API
refuses whatever was not authenticated here. A reply that is still being sent when its
session ends is aborted, as what is followed has no end of its own.
"""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grass.api.access.auth import Principal, admit, refused_unread
from grass.api.access.browser_checks import (
    SAFE,
    BrowserChecks,
    is_api,
    is_navigation,
)
from grass.api.access.web_sessions import LOG_IN, SESSION_S, Sessions, WebSession
from grass.api.server.cancellation import StreamAborted
from grass.api.server.login_page import link_page, look_again_page, token_page
from grass.api.server.request_body import small_body
from grass.api.server.static_files import ISOLATION, StaticFiles
from grass.errors import Forbidden, GrassError, Unauthorized, UsageError

OTHERS = "others"
"""In the state of a connection: whether a process of another user has made it."""
_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"
_OF_API = {**ISOLATION, "Content-Security-Policy": _POLICY}
"""Nothing that a job wrote is ever shown as a page."""

Identify = Callable[[Request, WebSession], Awaitable[Principal]]
"""Returns the caller that a session stands for now, or raises."""
TokenLogin = Callable[[str], WebSession]
"""Returns the session of a token's text, or raises."""


class WebApp:
    """Answers browsers; `api` answers what they ask of the API."""

    def __init__(
        self,
        api: ASGIApp,
        sessions: Sessions,
        checks: BrowserChecks,
        files: StaticFiles,
        identify: Identify,
        token_login: TokenLogin | None = None,
    ) -> None:
        """Prepare; without `token_login` a browser logs in by a link alone."""
        self._api = api
        self.sessions = sessions
        self._checks = checks
        self._files = files
        self._identify = identify
        self._token_login = token_login
        self._calls: defaultdict[str, set[asyncio.Timeout]] = defaultdict(set)
        """By the id of a session: its calls of the API that are under way."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        assert scope["type"] == "http"
        request = Request(scope, receive)
        try:
            self._check(request)
            response = await self._login(request)
            if response is None:
                session = self._session(request)
                principal = await self._identify(request, session)
                if is_api(request):
                    passed = self._pass_on(scope, principal, receive, send)
                    await self._while_logged_in(session, passed)
                    return
                response = self._page(request)
        except Unauthorized as error:
            response = self._logged_out(request, error)
        except GrassError as error:
            response = _refused(request, error)
        await response(scope, receive, send)

    def _check(self, request: Request) -> None:
        if request.scope["state"].get(OTHERS):
            raise Forbidden("this page belongs to another user of this machine")
        self._checks.check(request)

    async def _login(self, request: Request) -> Response | None:
        """Answer a login or logout; None: it is neither."""
        path, method = request.scope["path"], request.method
        if path == "/logout" and method == "POST":
            return self._logout(request)
        if path != "/login":
            return None
        if method in SAFE:
            text = request.query_params.get("token")
            # What looks ahead at links, with HEAD, must not use one up.
            if text is None or method == "HEAD":
                return self._login_page("", 200)
            session = self.sessions.redeem(text, time.time())
        elif self._token_login is None:
            raise Forbidden("this server has no login by a token", LOG_IN)
        else:
            fields = parse_qs((await small_body(request)).decode("latin-1"))
            session = self._token_login(fields.get("token", [""])[0])
        return self._with_cookie("/", self.sessions.sealed(session), SESSION_S)

    def _logout(self, request: Request) -> Response:
        """End the session, and what its browser follows in other tabs."""
        with contextlib.suppress(Unauthorized):
            session = self._session(request)
            now = asyncio.get_running_loop().time()
            for call in self._calls.get(session.id, ()):
                call.reschedule(now)
            self.sessions.end(session, time.time())
        return self._with_cookie("/login", "", 0)

    def _with_cookie(self, goes_to: str, value: str, age_s: int) -> Response:
        response = RedirectResponse(goes_to, 303, {**ISOLATION, **_NOT_KEPT})
        response.set_cookie(
            self.sessions.cookie,
            value,
            max_age=age_s,
            path="/",
            secure=self._checks.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    def _session(self, request: Request) -> WebSession:
        value = request.cookies.get(self.sessions.cookie, "")
        session = self.sessions.opened(value, time.time())
        if session is None:
            raise Unauthorized("this browser is not logged in", LOG_IN)
        return session

    async def _while_logged_in(
        self, session: WebSession, work: Awaitable[None]
    ) -> None:
        """Do the work; abort it when the session ends."""
        call = asyncio.timeout(session.until - time.time())
        self._calls[session.id].add(call)
        try:
            async with call:
                await work
        except TimeoutError:
            if not call.expired():
                raise
            raise StreamAborted from None
        finally:
            self._leave(session.id, call)

    def _leave(self, id: str, call: asyncio.Timeout) -> None:
        others = self._calls[id]
        others.discard(call)
        if not others:
            del self._calls[id]

    async def _pass_on(
        self, scope: Scope, principal: Principal, receive: Receive, send: Send
    ) -> None:
        async def send_isolated(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_OF_API)
                headers.setdefault("Cache-Control", "no-store")
                # The page counts ages on the clock of what it asks.
                headers.setdefault("Date", formatdate(usegmt=True))
            await send(message)

        inner = {**scope, "state": {}}
        admit(inner, principal)
        await self._api(inner, receive, send_isolated)

    def _page(self, request: Request) -> Response:
        if request.method not in SAFE:
            raise UsageError(f"{request.method} does not work here")
        return self._files.reply(request)

    def _logged_out(self, request: Request, error: Unauthorized) -> Response:
        """Answer a browser without a valid cookie; a person gets a page."""
        is_form = request.scope["path"] == "/login"
        if is_api(request) or not (is_form or _is_person(request)):
            return _refused(request, error)
        from_other_site = request.headers.get("sec-fetch-site") == "cross-site"
        if from_other_site and not is_form:
            return look_again_page()
        return self._login_page(error.message if is_form else "", error.status)

    def _login_page(self, told: str, status: int) -> Response:
        page = link_page if self._token_login is None else token_page
        return page(told, status)


_NOT_KEPT = {"Cache-Control": "no-store"}


def _is_person(request: Request) -> bool:
    """Return whether a page is wanted, also by a browser that does not say so."""
    wants_page = "text/html" in request.headers.get("accept", "")
    return is_navigation(request) or (request.method == "GET" and wants_page)


def _refused(request: Request, error: GrassError) -> Response:
    response = refused_unread(request, error)
    response.headers.update(_OF_API)
    return response
