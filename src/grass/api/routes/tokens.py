"""Routes for tokens, and the one that exchanges a code for a machine's own token.

Secrets are returned once; the broker gets their hashes. A wrong code and an expired one
get the same answer, and the number of wrong codes from a network is limited. A name
that owns jobs is not given to another token while one of those jobs exists: a lock
keeps two calls from choosing the same name.
"""

import time

from starlette.requests import Request

from grass.api.access.auth import actor, bearer, connection_of
from grass.api.context import Context, api_state, context_of
from grass.api.routes.broker_calls import do
from grass.api.routes.request_bodies import JoinBody, NewTokenBody
from grass.broker.core.access.tokens import WRONG_CODE
from grass.broker.core.calls import Done, Enrol, RevokeToken
from grass.broker.core.workers import registry
from grass.broker.shell.new_secrets import new_secret, new_token_call
from grass.broker.shell.service import Broker
from grass.errors import Forbidden, Refused, Unauthorized
from grass.model.access import (
    DEFAULT_ROLE,
    START_CODE,
    Right,
    Token,
    actor_of,
    hash_of,
    is_start_name,
    may_work,
    no_start_name,
    numbered,
    rights_of,
    split_token,
    token_name,
    token_text,
)
from grass.model.times import rfc3339
from grass.queries.documents import (
    IssuedReply,
    JoinedReply,
    TokenReply,
    TokensReply,
)
from grass.store.interface import JobFilter


async def page(request: Request) -> TokensReply:
    """List valid tokens and codes, without their secrets."""
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
    """Make a token, or a code that machines join with; it is returned once."""
    broker, who = context_of(request).broker, actor(request)
    if body.code and context_of(request).tcp is None:
        raise Refused(
            "this daemon listens to no other machine",
            "`grass daemon --bind 0.0.0.0:7500` does",
        )
    if body.code and body.name is not None:
        _check_code_name(body.name, body)
    secret = new_secret(is_code=body.code)
    call = new_token_call(
        who, secret, body.role, body.name, is_code=body.code, hours=body.hours
    )
    async with api_state(request).naming:
        if not body.code:
            call.used_names = await _used_names(broker, body.name or body.role)
        done = await broker.call(call)
    reply = IssuedReply(done.name, done.role, rfc3339(done.expires_at))
    if body.code:
        reply.code = secret
    else:
        reply.token = token_text(done.name, secret)
    return reply


async def revoke(request: Request) -> Done:
    """Revoke a token or code; its connections are closed at once."""
    broker, name = context_of(request).broker, str(request.path_params["name"])
    known = broker.state.tokens.get(name)
    reply = await do(request, RevokeToken(actor(request), name))
    if known is not None and known.worker is not None:
        broker.disconnect(known.worker)
    drop_revoked(request)
    return reply


async def join(request: Request, body: JoinBody) -> JoinedReply:
    """Exchange a code for a token of the machine's own."""
    context, connection = context_of(request), connection_of(request)
    network = "" if connection is None else connection.network
    code = _code(request, body.code, network)
    if body.worker is not None and body.worker == context.worker:
        raise Refused("this machine is the broker itself", "it need not join")
    key, store = _standby(context, code) if body.standby else ("", "")
    secret = new_secret()
    shown = bearer(request)
    call = Enrol(code.name, body.name, body.worker, hash_of(secret))
    if shown is not None:
        call.shown_name, its_secret = split_token(shown)
        call.shown = hash_of(its_secret)
    call.instance = body.instance or ""
    async with api_state(request).naming:
        wanted = token_name(body.name)
        call.used_names = await _used_names(context.broker, wanted)
        done = await context.broker.call(call)
    _disconnect_worker(context.broker, done.name)
    drop_revoked(request)
    token = token_text(done.name, secret)
    lead = context.broker.lead
    return JoinedReply(
        done.name,
        done.role,
        token,
        context.broker.state.cluster,
        brokers=[] if lead is None else list(lead.addresses()),
        key=key,
        store=store,
    )


def _standby(context: Context, code: Token) -> tuple[str, str]:
    """Return the brokers' key and their database, for a code that is good for them."""
    if Right.LEAD not in rights_of(code.role):
        raise Forbidden(
            "this code is not for a broker",
            "`grass token new --role broker` prints a line for one",
        )
    if context.standby is None:
        raise Refused(
            "this broker shares its database with no other",
            "start it with --store postgresql://… and --bind, and without --cert",
        )
    return context.standby.key(), context.standby.store


def _disconnect_worker(broker: Broker, name: str) -> None:
    """Close the link of a worker that has joined again without the right to work."""
    token = broker.state.tokens.get(name)
    if token is not None and token.worker is not None and not may_work(token.role):
        broker.disconnect(token.worker)


def drop_revoked(request: Request) -> None:
    """Close connections whose token is not valid any more."""
    tokens = context_of(request).broker.state.tokens
    api_state(request).connections.drop_revoked(tokens)


async def _used_names(broker: Broker, wanted: str) -> frozenset[str]:
    """Return the names like this one that have jobs, but no token."""
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


def _code(request: Request, text: str, network: str) -> Token:
    """Find a code; all are compared, so that the time reveals nothing."""
    wrong = api_state(request).wrong_codes
    wrong.check(network, time.monotonic())
    tokens, hashed = context_of(request).broker.state.tokens, hash_of(text)
    known = [one for one in tokens.values() if one.is_code]
    found = [one for one in known if one.fits(hashed)]
    if not found or not found[0].holds(_now()):
        wrong.note(network)
        raise Unauthorized(*WRONG_CODE)
    return found[0]


def _check_code_name(name: str, body: NewTokenBody) -> None:
    """Refuse the name of a start's code, unless role and age are a start's too."""
    is_of_start = (name, body.role, body.hours) == (START_CODE, DEFAULT_ROLE, None)
    if is_start_name(name) and not is_of_start:
        raise no_start_name(name)


def _now() -> int:
    return time.time_ns() // 1000
