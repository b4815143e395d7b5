"""The two web applications: for one user of a machine, and for people with tokens."""

import time
from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp

from grass.api.access.auth import Principal, connection_of, record_token_use
from grass.api.access.browser_checks import LOOPBACK, BrowserChecks
from grass.api.access.web_sessions import (
    LOG_IN,
    Sessions,
    WebSession,
    principal_of,
    session_of_token,
    valid_token,
)
from grass.api.server.static_files import StaticFiles
from grass.api.server.web_app import WebApp
from grass.broker.shell.service import Broker
from grass.errors import Busy, Unauthorized
from grass.web import STATIC


def on_loopback(app: ASGIApp, sessions: Sessions, host: str) -> WebApp:
    """Return the application for one user of this machine, at this host."""

    async def identify(_request: Request, session: WebSession) -> Principal:
        if session.token:
            raise Unauthorized("this browser is not logged in", LOG_IN)
        return principal_of(session, None)

    checks = BrowserChecks("http", LOOPBACK | {host})
    return WebApp(app, sessions, checks, StaticFiles(STATIC), identify)


def beyond_loopback(
    app: Starlette, sessions: Sessions, names: Iterable[str], broker: Broker
) -> WebApp:
    """Return the application for people with tokens of the broker."""

    async def identify(request: Request, session: WebSession) -> Principal:
        tokens, connection = broker.state.tokens, connection_of(request)
        token = valid_token(session, tokens, time.time())
        if token is None or connection is None:
            raise Unauthorized("this browser is not logged in, or its token is revoked")
        if not connection.identify(token, bytes.fromhex(session.shown)):
            raise Busy(f"the token `{token.name}` has too many connections open")
        await record_token_use(broker, connection, app.state.api.connections)
        return principal_of(session, token)

    def log_in(text: str) -> WebSession:
        return session_of_token(text, broker.state.tokens, time.time())

    checks = BrowserChecks("https", names)
    return WebApp(app, sessions, checks, StaticFiles(STATIC), identify, log_in)
