"""Tokens: who may call from another machine.

Secrets are made and read outside; here there are only their hashes. A code enrols as
many machines as use it in time, each with a token of its own under a name of its own. A
machine that enrols again keeps its name, so its jobs stay its own, and its former token
counts no more. What has expired is forgotten when tokens are next changed.
"""

from typing import Any

from grass.broker.calls import (
    BindToken,
    Done,
    Enrol,
    Issued,
    NewToken,
    RevokeToken,
    TouchToken,
)
from grass.broker.state import State
from grass.errors import Forbidden, NotFound, Refused, Unauthorized, UsageError
from grass.model.rights import ROLES, Right
from grass.model.token import (
    LONGEST_NAME,
    Token,
    actor_of,
    check_token_name,
    token_name,
)

MOST_TOKENS = 10_000


def new(state: State, call: NewToken) -> Issued:
    """Make a token, or a code that machines get theirs with."""
    if call.role not in ROLES:
        known = ", ".join(ROLES)
        raise UsageError(f"there is no role `{call.role}`", f"roles: {known}")
    if call.name is not None:
        _check_free(state, check_token_name(call.name))
    _check_room(state)
    _forget_expired(state)
    name = call.name or _free_name(state, "code" if call.is_code else call.role)
    made = Token(name, call.role, call.hash, state.now_us, call.actor)
    made.is_code, made.expires_at = call.is_code, call.expires_at
    _save(state, made)
    state.note_by(
        call.actor, "token-created", name=name, role=call.role, code=call.is_code
    )
    return Issued(name, call.role, made.expires_at)


def revoke(state: State, call: RevokeToken) -> Done:
    """Have a token, or a code, count no more."""
    if call.name not in state.tokens:
        raise NotFound(
            f"there is no token `{call.name}`", "`grass token list` lists all"
        )
    _forget_expired(state)
    forget(state, call.name)
    state.note_by(call.actor, "token-revoked", name=call.name)
    return Done()


def enrol(state: State, call: Enrol) -> Issued:
    """Exchange a code for a token of the machine's own."""
    code = state.tokens.get(call.code)
    if code is None or not code.is_code or not code.holds(state.now_us):
        raise Unauthorized(*WRONG_CODE)
    # A code is only worth a worker if its role is: nobody else can displace one.
    worker = call.worker if Right.WORK in ROLES.get(code.role, frozenset()) else None
    former = _bound_to(state, worker)
    _check_room(state)
    _forget_expired(state)
    code.used_at = state.now_us
    _save(state, code)
    if former is not None:
        forget(state, former.name)
    name = former.name if former else _free_name(state, token_name(call.name))
    made = Token(name, code.role, call.hash, state.now_us, code.created_by)
    made.worker = worker
    _save(state, made)
    facts: dict[str, Any] = {"worker": worker, "role": code.role, "code": code.name}
    state.note_by(actor_of(name), "machine-joined", name=name, **facts)
    return Issued(name, code.role, None)


def bind(state: State, call: BindToken) -> Done:
    """Tie a token to the worker that uses it first."""
    token = state.tokens.get(call.name)
    if token is None or token.is_code:
        raise Unauthorized("this token counts no more", "join again")
    if token.worker == call.worker:
        return Done(changed=False)
    other = _bound_to(state, call.worker)
    if token.worker is not None or other is not None:
        raise Forbidden(
            "this token is not the worker's own",
            "paste a line of `grass token new` on that machine",
        )
    token.worker = call.worker
    _save(state, token)
    return Done()


def touch(state: State, call: TouchToken) -> None:
    """Note that a token is in use."""
    token = state.tokens.get(call.name)
    if token is not None:
        token.used_at = state.now_us
        _save(state, token)


WRONG_CODE = (
    "this code is wrong or has expired",
    "get a new line with `grass token new` on the broker's machine",
)
"""The same words for both: a guess learns nothing."""


def forget(state: State, name: str) -> None:
    """Drop a token without a line in the journal."""
    del state.tokens[name]
    state.changes.tokens.pop(name, None)
    state.changes.removed_tokens.append(name)
    state.urgent = True


def forget_worker(state: State, worker: str) -> list[str]:
    """Drop the tokens of a worker that is forgotten; give their names."""
    names = [one.name for one in state.tokens.values() if one.worker == worker]
    for name in names:
        forget(state, name)
    return names


def _save(state: State, token: Token) -> None:
    state.tokens[token.name] = token
    state.changes.tokens[token.name] = token
    state.urgent = True


def _check_free(state: State, name: str) -> None:
    known = state.tokens.get(name)
    if known is not None and known.holds(state.now_us):
        raise Refused(
            f"there is a token `{name}` already",
            f"`grass token revoke {name}`, or choose another name",
        )


def _check_room(state: State) -> None:
    if len(state.tokens) >= MOST_TOKENS:
        raise Refused(
            f"there are {MOST_TOKENS} tokens already", "`grass token revoke` some"
        )


def _forget_expired(state: State) -> None:
    expired = [one for one in state.tokens.values() if not one.holds(state.now_us)]
    for token in expired:
        forget(state, token.name)


def _bound_to(state: State, worker: str | None) -> Token | None:
    if worker is None:
        return None
    return next((one for one in state.tokens.values() if one.worker == worker), None)


def _free_name(state: State, wanted: str) -> str:
    """Give the name, or with a number if it is taken: `laptop`, `laptop-2`."""
    name, number = wanted, 1
    while name in state.tokens:
        number += 1
        ending = f"-{number}"
        name = wanted[: LONGEST_NAME - len(ending)] + ending
    return name
