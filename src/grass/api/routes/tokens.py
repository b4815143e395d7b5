"""Routes about tokens, and the one by which a machine without any gets its own.

Secrets are made here and told once; the broker learns their hashes. A code that is
wrong and one that has expired get the same answer, and whoever tries many is made to
wait. A name under which jobs were enqueued is given to nobody else as long as one of
them is there: one call at a time looks and takes a name.
"""

import asyncio
import secrets
import time

from starlette.requests import Request

from grass.api.access.auth import actor, bearer, guest_of
from grass.api.access.tcp_connections import Guests
from grass.api.context import context_of
from grass.api.routes.doing import do
from grass.api.routes.request_bodies import JoinBody, NewTokenBody
from grass.broker.core.access.tokens import WRONG_CODE
from grass.broker.core.calls import Enrol, NewToken, RevokeToken
from grass.broker.core.replies import Issued
from grass.broker.core.workers import registry
from grass.broker.shell.service import Broker
from grass.errors import Refused, Unauthorized
from grass.model.rights import DEFAULT_ROLE, may_work
from grass.model.times import rfc3339
from grass.model.token import (
    START_CODE,
    Token,
    actor_of,
    hash_of,
    is_start_name,
    no_start_name,
    numbered,
    split_token,
    token_name,
    token_text,
)
from grass.queries.documents import (
    DoneReply,
    IssuedReply,
    JoinedReply,
    TokenReply,
    TokensReply,
)
from grass.store.interface import JobFilter

CODE_BYTES = 16
SECRET_BYTES = 32
CODE_HOURS = 1.0
MOST_WRONG = 20
"""Wrong codes that one address may try within a minute."""
MOST_ADDRESSES = 10_000
_MINUTE_S = 60.0
_HOUR_US = 3_600 * 1_000_000


class WrongCodes:
    """How many wrong codes came from where, within this minute."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._until = 0.0

    def check(self, place: str, now_s: float) -> None:
        """Refuse an address that has tried too many."""
        if now_s >= self._until or len(self._counts) > MOST_ADDRESSES:
            self._counts.clear()
            self._until = now_s + _MINUTE_S
        if self._counts.get(place, 0) >= MOST_WRONG:
            raise Refused(
                "too many wrong codes came from this address",
                "wait a minute, then paste the line as it was printed",
            )

    def note(self, place: str) -> None:
        """Count a wrong code."""
        self._counts[place] = self._counts.get(place, 0) + 1


async def page(request: Request) -> TokensReply:
    """List tokens and codes that count; nobody can tell their secrets."""
    state, now = context_of(request).broker.state, _now()
    shown = [
        TokenReply(
            name=one.name,
            role=one.role,
            code=one.is_code,
            worker=None if one.worker is None else registry.name_of(state, one.worker),
            created_at=rfc3339(one.created_at),
            created_by=one.created_by,
            expires_at=rfc3339(one.expires_at),
            used_at=rfc3339(one.used_at),
        )
        for one in state.tokens.values()
        if one.holds(now)
    ]
    return TokensReply(shown)


async def new(request: Request, body: NewTokenBody) -> IssuedReply:
    """Make a token, or a code that machines join with; told once."""
    broker, who = context_of(request).broker, actor(request)
    if body.code and context_of(request).door is None:
        raise Refused(
            "this daemon listens to no other machine",
            "`grass daemon --bind 0.0.0.0:7500` does",
        )
    if body.code and body.name is not None:
        _check_code_name(body.name, body)
    secret = secrets.token_urlsafe(CODE_BYTES if body.code else SECRET_BYTES)
    hours = CODE_HOURS if body.code and body.hours is None else body.hours
    call = _call(who, secret, body, hours)
    async with _naming(request):
        if not body.code:
            call.used_names = await _used_names(broker, body.name or body.role)
        done: Issued = await broker.call(call)
    reply = IssuedReply(done.name, done.role, rfc3339(done.expires_at))
    if body.code:
        reply.code = secret
    else:
        reply.token = token_text(done.name, secret)
    return reply


async def new_code(
    broker: Broker,
    actor: str,
    role: str = DEFAULT_ROLE,
    name: str | None = None,
) -> str:
    """Make a code that machines join with; for the daemon itself."""
    secret = secrets.token_urlsafe(CODE_BYTES)
    await broker.call(_call(actor, secret, NewTokenBody(name, role), CODE_HOURS))
    return secret


async def revoke(request: Request) -> DoneReply:
    """Have a token or code count no more; who uses it is cut off at once."""
    broker, name = context_of(request).broker, str(request.path_params["name"])
    known = broker.state.tokens.get(name)
    reply = await do(request, RevokeToken(actor(request), name))
    if known is not None and known.worker is not None:
        broker.hang_up(known.worker)
    sweep(request)
    return reply


async def join(request: Request, body: JoinBody) -> JoinedReply:
    """Exchange a code for a token of the machine's own."""
    context, guest = context_of(request), guest_of(request)
    place = "" if guest is None else guest.place
    code = _code(request, body.code, place)
    if body.worker is not None and body.worker == context.worker:
        raise Refused("this machine is the broker itself", "it need not join")
    secret = secrets.token_urlsafe(SECRET_BYTES)
    shown = bearer(request)
    call = Enrol(code.name, body.name, body.worker, hash_of(secret))
    if shown is not None:
        call.shown_name, its_secret = split_token(shown)
        call.shown = hash_of(its_secret)
    call.instance = body.instance or ""
    async with _naming(request):
        wanted = token_name(body.name)
        call.used_names = await _used_names(context.broker, wanted)
        done: Issued = await context.broker.call(call)
    _cut_former_worker(context.broker, done.name)
    sweep(request)
    token = token_text(done.name, secret)
    return JoinedReply(done.name, done.role, token, context.broker.state.cluster)


def _cut_former_worker(broker: Broker, name: str) -> None:
    """Cut the link of a worker that has joined again without the right to work."""
    token = broker.state.tokens.get(name)
    if token is not None and token.worker is not None and not may_work(token.role):
        broker.hang_up(token.worker)


def sweep(request: Request) -> None:
    """Cut off whoever holds a token that counts no more."""
    guests = request.app.state.guests
    assert isinstance(guests, Guests)
    guests.sweep(context_of(request).broker.state.tokens)


def _naming(request: Request) -> asyncio.Lock:
    lock = request.app.state.naming
    assert isinstance(lock, asyncio.Lock)
    return lock


async def _used_names(broker: Broker, wanted: str) -> frozenset[str]:
    """Give the names like this one that are nobody's now, and that jobs have."""
    used: set[str] = set()
    for name in numbered(wanted):
        if name in broker.state.tokens:
            continue
        if not await _has_jobs(broker, actor_of(name)):
            break
        used.add(name)
    return frozenset(used)


async def _has_jobs(broker: Broker, owner: str) -> bool:
    wanted = JobFilter(owner=owner)
    return bool(await broker.read(lambda db: db.jobs(wanted, 1)))


def _code(request: Request, text: str, place: str) -> Token:
    """Find the code that was shown; all are compared, so that time tells nothing."""
    wrong = request.app.state.wrong_codes
    assert isinstance(wrong, WrongCodes)
    wrong.check(place, time.monotonic())
    tokens, hashed = context_of(request).broker.state.tokens, hash_of(text)
    known = [one for one in tokens.values() if one.is_code]
    found = [one for one in known if one.fits(hashed)]
    if not found or not found[0].holds(_now()):
        wrong.note(place)
        raise Unauthorized(*WRONG_CODE)
    return found[0]


def _check_code_name(name: str, body: NewTokenBody) -> None:
    """Leave the name of a start's code to it: such a code has nothing of its own."""
    is_of_start = (name, body.role, body.hours) == (START_CODE, DEFAULT_ROLE, None)
    if is_start_name(name) and not is_of_start:
        raise no_start_name(name)


def _call(who: str, secret: str, body: NewTokenBody, hours: float | None) -> NewToken:
    expires_at = None if hours is None else _now() + int(hours * _HOUR_US)
    return NewToken(
        actor=who,
        role=body.role,
        hash=hash_of(secret),
        name=body.name,
        is_code=body.code,
        expires_at=expires_at,
    )


def _now() -> int:
    return time.time_ns() // 1000
