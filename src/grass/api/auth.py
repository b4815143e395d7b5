"""Who is calling, and what they may do.

On the Unix socket the kernel tells the caller's uid; the owner of the daemon has every
right. From another machine a caller shows a token, `Authorization: Bearer NAME.SECRET`,
with every request. Only the hash of a secret is known here; hashes are compared in
constant time, and a name that is unknown costs what a known one does.
"""

import os
import time
from typing import NamedTuple

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from grass.api.context import context_of
from grass.api.guests import MOST_OF_ONE, Guest
from grass.api.problem import problem_response
from grass.broker.calls import TouchToken
from grass.errors import Busy, Forbidden, GrassError, Unauthorized
from grass.model.rights import EVERYTHING, ROLES, Right
from grass.model.token import Token, actor_of, hash_of, split_token

USE_NOTED_US = 3_600 * 1_000_000
"""How often the use of a token is written down."""
_NOBODY = Token("", "", bytes(32), 0, "")
_KEY = "grass.identity"


class Identity(NamedTuple):
    """A caller that was identified."""

    actor: str
    """`uid:…` or `token:…`, as jobs and the journal have it."""
    rights: frozenset[Right]
    worker: str | None = None
    """The worker that its token belongs to."""
    role: str | None = None
    """None: a caller on the local socket."""


def identify(request: HTTPConnection) -> Identity:
    """Tell who calls, or refuse."""
    known = request.scope.get(_KEY)
    if isinstance(known, Identity):
        return known
    guest = guest_of(request)
    identity = _local(request) if guest is None else _remote(request, guest)
    request.scope[_KEY] = identity
    return identity


def guest_of(request: HTTPConnection) -> Guest | None:
    """Give the connection that a request came by; None: the local socket."""
    guest = request.scope.get("state", {}).get("guest")
    return guest if isinstance(guest, Guest) else None


def actor(request: HTTPConnection) -> str:
    """Name the caller, as jobs and the journal do."""
    return identify(request).actor


def may(request: HTTPConnection, right: Right) -> bool:
    """Tell whether the caller has a right."""
    return right in identify(request).rights


def require(request: HTTPConnection, right: Right, own: Right | None = None) -> None:
    """Refuse a caller without this right; `own` is enough for what is its own."""
    identity = identify(request)
    if right not in identity.rights and own not in identity.rights:
        needed = own or right
        raise Forbidden(
            f"this needs the right `{needed}`, which the role `{identity.role}` does"
            " not have",
            "ask for a token of a role that has it: see `grass token --help`",
        )


async def admit(request: Request, right: Right | None, own: Right | None) -> None:
    """Let a request in, before its body is read, or refuse it."""
    if right is None and guest_of(request) is not None:
        return
    identify(request)
    if right is not None:
        require(request, right, own)
    await note_use(request)


def refused(request: Request, error: GrassError) -> Response:
    """Answer an error; a stranger who was refused too often is shown out."""
    response = problem_response(error)
    guest = guest_of(request)
    if isinstance(error, Unauthorized) and guest is not None and guest.refused():
        response.headers["Connection"] = "close"
    return response


async def note_use(request: HTTPConnection) -> None:
    """Write down now and then that a token is in use."""
    guest = guest_of(request)
    token = guest.token if guest is not None else None
    if token is None:
        return
    now = time.time_ns() // 1000
    if token.used_at is None or now - token.used_at > USE_NOTED_US:
        try:
            await context_of(request).broker.call(TouchToken(token.name))
        except GrassError:
            # A full disk: whoever only looks is not to be bothered with it.
            return


def _local(request: HTTPConnection) -> Identity:
    uid = request.scope.get("state", {}).get("uid")
    if uid is None or uid not in (0, os.geteuid()):
        raise Forbidden("this daemon belongs to another user")
    return Identity(f"uid:{uid}", EVERYTHING)


def _remote(request: HTTPConnection, guest: Guest) -> Identity:
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise Unauthorized(
            "this broker answers nobody without a token",
            "join it first: grass join HOST:PORT/PIN/CODE",
        )
    name, secret = split_token(text.strip())
    token = context_of(request).broker.state.tokens.get(name, _NOBODY)
    fits = token.fits(hash_of(secret))
    now = time.time_ns() // 1000
    if not fits or token is _NOBODY or token.is_code or not token.holds(now):
        raise Unauthorized(
            "this token is unknown here, or was revoked",
            "join again: grass join HOST:PORT/PIN/CODE",
        )
    if not guest.identified(token):
        raise Busy(
            f"the token `{name}` has {MOST_OF_ONE} connections open already",
            "close some, or get another token",
        )
    return Identity(
        actor_of(token.name),
        ROLES.get(token.role, frozenset()),
        token.worker,
        token.role,
    )
