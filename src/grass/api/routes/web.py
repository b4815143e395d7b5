"""Routes for the dashboard: who calls, and the daemon's web server."""

import socket

from starlette.requests import Request

from grass.api.access.auth import actor, identify
from grass.api.context import WebControl, context_of
from grass.api.routes.request_bodies import WebBody
from grass.broker.core.calls import Done
from grass.errors import Refused
from grass.model.access import Right
from grass.queries.documents import SessionReply, WebReply

SHOWN = (Right.READ, Right.SUBMIT, Right.OPERATE, Right.ADMIN)
OWNER = "admin"
"""The role of the daemon's own user."""


async def session(request: Request) -> SessionReply:
    """Return who calls, what they may do, and which daemon answers."""
    context, caller = context_of(request), identify(request)
    return SessionReply(
        caller.actor,
        caller.role or OWNER,
        [str(right) for right in SHOWN if right in caller.rights],
        context.version,
        context.broker.state.cluster,
        socket.gethostname(),
        "local" if context.tcp is None else "broker",
    )


async def open_(request: Request, body: WebBody) -> WebReply:
    """Listen for browsers, and return a link that one of them logs in with."""
    web = _control(request)
    link = await web.open(body.host, body.port, actor(request), body.role)
    return WebReply(*link)


async def close(request: Request) -> Done:
    """Listen for browsers no more, and log all of them out."""
    return Done([], changed=await _control(request).close())


def _control(request: Request) -> WebControl:
    """Return what opens the web server; only the daemon's own user may use it."""
    web = context_of(request).web
    if web is None or identify(request).role is not None:
        raise Refused(
            "the page of a daemon is opened on its own machine",
            "type `grass web` there, or on a machine that has joined it",
        )
    return web
