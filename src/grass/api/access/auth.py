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
from starlette.types import Scope

from grass.api.access.tcp_connections import Guest, Guests
from grass.api.context import context_of
from grass.api.problem import problem_response
from grass.broker.core.calls import TouchToken
from grass.errors import Busy, Forbidden, GrassError, NotFound, Unauthorized
from grass.model.rights import EVERYTHING, Right, rights_of
from grass.model.token import Token, actor_of, hash_of, split_token

LARGEST_OF_STRANGERS = 64 * 1024
"""In bytes: what is read of a body before anybody was identified."""
USE_NOTED_US = 3_600 * 1_000_000
"""How often the use of a token is written down."""
_OF_ONES_OWN = {
    Right.SUBMIT: "jobs of one's own",
    Right.WORK: "views and units of one's own machine",
}
"""What a right is enough for, where another one is for everybody's."""
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
    token: str = ""
    """The name of its token; a caller on the local socket has none."""


def identify(request: HTTPConnection) -> Identity:
    """Tell who calls, or refuse."""
    known = request.scope.get(_KEY)
    if isinstance(known, Identity):
        return known
    guest = guest_of(request)
    identity = _local(request) if guest is None else _remote(request, guest)
    request.scope[_KEY] = identity
    return identity


def is_identified(scope: Scope) -> bool:
    """Tell whether the caller of a request has been identified."""
    return isinstance(scope.get(_KEY), Identity)


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
    if right in identity.rights or own in identity.rights:
        return
    hint = "ask for a token of a role that has it: see `grass token --help`"
    if own is None:
        lacks = f"`{right}`, which the role `{identity.role}` does not have"
    else:
        either = f"`{right}`, or `{own}` for {_OF_ONES_OWN[own]}"
        lacks = f"{either}; the role `{identity.role}` has neither"
    raise Forbidden(f"this needs the right {lacks}", hint)


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
    response = problem_response(_told(request, error))
    guest = guest_of(request)
    if isinstance(error, Unauthorized) and guest is not None and guest.refused():
        hang_up_after(response)
    return response


def _told(request: Request, error: GrassError) -> GrassError:
    """Leave out the hint of what there is, for a caller who may not look."""
    identity = request.scope.get(_KEY)
    if not isinstance(error, NotFound) or not isinstance(identity, Identity):
        return error
    return error if Right.READ in identity.rights else type(error)(error.message)


def turned_away(request: Request, error: GrassError) -> Response:
    """Answer a request that is refused before its body is read.

    A small body is read and dropped, so that the connection can go on; of a large one
    nothing is read, and who sends it is hung up on.
    """
    response = refused(request, error)
    if is_large(request) or "transfer-encoding" in request.headers:
        hang_up_after(response)
    return response


def is_large(request: Request) -> bool:
    """Tell whether a body is announced that is larger than is read of strangers."""
    length = request.headers.get("content-length", "0")
    return not length.isdecimal() or int(length) > LARGEST_OF_STRANGERS


def hang_up_after(response: Response) -> None:
    """Have the connection closed once this has been said."""
    response.headers["Connection"] = "close"


async def note_use(request: HTTPConnection) -> None:
    """Write down now and then that a token is in use."""
    guest = guest_of(request)
    token = guest.token if guest is not None else None
    if guest is None or token is None:
        return
    now = time.time_ns() // 1000
    is_due = token.used_at is None or now - token.used_at > USE_NOTED_US
    renews = token.ends_former(guest.shown)
    if not is_due and not renews:
        return
    broker = context_of(request).broker
    try:
        await broker.call(TouchToken(token.name, guest.shown))
    except GrassError:
        # A full disk: whoever only looks is not to be bothered with it.
        return
    if renews:
        guests = request.app.state.guests
        assert isinstance(guests, Guests)
        guests.sweep(broker.state.tokens)


def _local(request: HTTPConnection) -> Identity:
    uid = request.scope.get("state", {}).get("uid")
    if uid is None or uid not in (0, os.geteuid()):
        raise Forbidden("this daemon belongs to another user")
    return Identity(f"uid:{uid}", EVERYTHING)


def bearer(request: HTTPConnection) -> str | None:
    """Give the token that a request shows, be it good or not."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return (text.strip() or None) if scheme.lower() == "bearer" else None


def _remote(request: HTTPConnection, guest: Guest) -> Identity:
    text = bearer(request)
    if text is None:
        raise Unauthorized(
            "this broker answers nobody without a token",
            "join it first: grass join HOST:PORT/PIN/CODE",
        )
    name, secret = split_token(text)
    hashed = hash_of(secret)
    token = context_of(request).broker.state.tokens.get(name, _NOBODY)
    fits = token.fits(hashed)
    now = time.time_ns() // 1000
    if not fits or token is _NOBODY or token.is_code or not token.holds(now):
        raise Unauthorized(
            "this token is unknown here, or was revoked",
            "join again: grass join HOST:PORT/PIN/CODE",
        )
    if not guest.identified(token, hashed):
        raise Busy(
            f"the token `{name}` has too many connections open already",
            "close some, or get another token",
        )
    return Identity(
        actor_of(token.name),
        rights_of(token.role),
        token.worker,
        token.role,
        token.name,
    )
