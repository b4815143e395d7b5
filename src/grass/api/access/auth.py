"""Authentication and authorization of requests.

On the Unix socket the kernel names the caller's uid; the owner of the daemon has every
right. From another machine each request has a token, `Authorization: Bearer
NAME.SECRET`. The broker keeps only hashes of secrets; they are compared in constant
time, and an unknown name costs the same time as a known one.
"""

import os
import time
from typing import NamedTuple

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Scope

from grass.api.context import api_state, context_of
from grass.api.problem import problem_response
from grass.api.tcp_connections import TcpConnection, TcpConnections
from grass.broker.core.calls import TouchToken
from grass.broker.shell.service import Broker
from grass.errors import Busy, Forbidden, GrassError, NotFound, Unauthorized
from grass.model.access import (
    EVERYTHING,
    Right,
    Token,
    actor_of,
    hash_of,
    rights_of,
    split_token,
)

LARGEST_UNIDENTIFIED_BODY = 64 * 1024
"""In bytes: the largest body that is read of a caller without a token."""
USE_NOTED_US = 3_600 * 1_000_000
"""How often the use of a token is stored."""
_OF_ONES_OWN = {
    Right.SUBMIT: "jobs of one's own",
    Right.WORK: "views and units of one's own machine",
}
"""What a weaker right allows where the other right is for all of them."""
_UNKNOWN = Token("", "", bytes(32), 0, "")
_KEY = "grass.principal"


class Principal(NamedTuple):
    """A caller that was authenticated."""

    actor: str
    """`uid:…` or `token:…`, as in jobs and the journal."""
    rights: frozenset[Right]
    worker: str | None = None
    """The worker that the token is bound to."""
    role: str | None = None
    """None: a caller on the local socket."""
    token: str = ""
    """The name of the token; empty for a caller on the local socket."""


def identify(request: HTTPConnection) -> Principal:
    """Return the caller of a request, or raise."""
    known = request.scope.get(_KEY)
    if isinstance(known, Principal):
        return known
    connection = connection_of(request)
    principal = _local(request) if connection is None else _remote(request, connection)
    request.scope[_KEY] = principal
    return principal


def admit(scope: Scope, principal: Principal) -> None:
    """Note the caller of a request that was authenticated by other means."""
    scope[_KEY] = principal


def is_identified(scope: Scope) -> bool:
    """Return whether the caller of a request was authenticated."""
    return isinstance(scope.get(_KEY), Principal)


def connection_of(request: HTTPConnection) -> TcpConnection | None:
    """Return the TCP connection of a request; None: the local socket."""
    connection = request.scope.get("state", {}).get("connection")
    return connection if isinstance(connection, TcpConnection) else None


def actor(request: HTTPConnection) -> str:
    """Return the caller's name, as in jobs and the journal."""
    return identify(request).actor


def may(request: HTTPConnection, right: Right) -> bool:
    """Return whether the caller has a right."""
    return right in identify(request).rights


def require(request: HTTPConnection, right: Right, own: Right | None = None) -> None:
    """Raise unless the caller has this right, or `own` for what belongs to it."""
    principal = identify(request)
    if right in principal.rights or own in principal.rights:
        return
    hint = "ask for a token of a role that has it: see `grass token --help`"
    if own is None:
        lacks = f"`{right}`, which the role `{principal.role}` does not have"
    else:
        either = f"`{right}`, or `{own}` for {_OF_ONES_OWN[own]}"
        lacks = f"{either}; the role `{principal.role}` has neither"
    raise Forbidden(f"this needs the right {lacks}", hint)


async def authorize(request: Request, right: Right | None, own: Right | None) -> None:
    """Check a request before its body is read, or raise."""
    if right is None and connection_of(request) is not None:
        return
    identify(request)
    if right is not None:
        require(request, right, own)
    await record_use(request)


def refused(request: Request, error: GrassError) -> Response:
    """Answer with an error; close a connection that was refused too often."""
    response = problem_response(_without_hint(request, error))
    connection = connection_of(request) if isinstance(error, Unauthorized) else None
    if connection is not None and connection.refused():
        close_after(response)
    return response


def _without_hint(request: Request, error: GrassError) -> GrassError:
    """Leave out the hint about what exists, for a caller without the right to read."""
    principal = request.scope.get(_KEY)
    if not isinstance(error, NotFound) or not isinstance(principal, Principal):
        return error
    return error if Right.READ in principal.rights else type(error)(error.message)


def refused_unread(request: Request, error: GrassError) -> Response:
    """Answer a request that is refused before its body is read.

    A small body is read and dropped, so that the connection stays usable; a large one
    is not read, and the connection is closed.
    """
    response = refused(request, error)
    if is_large(request) or "transfer-encoding" in request.headers:
        close_after(response)
    return response


def is_large(request: Request) -> bool:
    """Return whether a body is too large for a caller without a token."""
    length = request.headers.get("content-length", "0")
    return not length.isdecimal() or int(length) > LARGEST_UNIDENTIFIED_BODY


def close_after(response: Response) -> None:
    """Close the connection after this response."""
    response.headers["Connection"] = "close"


async def record_use(request: HTTPConnection) -> None:
    """Store now and then that a token is in use."""
    connection = connection_of(request)
    if connection is not None:
        connections = api_state(request).connections
        await record_token_use(context_of(request).broker, connection, connections)


async def record_token_use(
    broker: Broker, connection: TcpConnection, connections: TcpConnections
) -> None:
    """Store now and then that the token of a connection is in use."""
    token = connection.token
    if token is None:
        return
    now = time.time_ns() // 1000
    is_due = token.used_at is None or now - token.used_at > USE_NOTED_US
    renews = token.ends_previous(connection.shown)
    if not is_due and not renews:
        return
    try:
        await broker.call(TouchToken(token.name, connection.shown))
    except GrassError:
        # The disk is full, which must not fail a request that only reads.
        return
    if renews:
        connections.drop_revoked(broker.state.tokens)


def _local(request: HTTPConnection) -> Principal:
    uid = request.scope.get("state", {}).get("uid")
    if uid is None or uid not in (0, os.geteuid()):
        raise Forbidden("this daemon belongs to another user")
    return Principal(f"uid:{uid}", EVERYTHING)


def bearer(request: HTTPConnection) -> str | None:
    """Return the token of a request, valid or not."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return (text.strip() or None) if scheme.lower() == "bearer" else None


def _remote(request: HTTPConnection, connection: TcpConnection) -> Principal:
    text = bearer(request)
    if text is None:
        raise Unauthorized(
            "this broker requires a token",
            "join it first: grass join HOST:PORT/PIN/CODE",
        )
    name, secret = split_token(text)
    hashed = hash_of(secret)
    token = context_of(request).broker.state.tokens.get(name, _UNKNOWN)
    # An unknown one is compared, too, so that it takes as long.
    is_good = token.admits(hashed, time.time_ns() // 1000)
    if not is_good or token is _UNKNOWN:
        raise Unauthorized(
            "this token is unknown here, or was revoked",
            "join again: grass join HOST:PORT/PIN/CODE",
        )
    if not connection.identify(token, hashed):
        raise Busy(
            f"the token `{name}` has too many connections open already",
            "close some, or get another token",
        )
    return Principal(
        actor_of(token.name),
        rights_of(token.role),
        token.worker,
        token.role,
        token.name,
    )
