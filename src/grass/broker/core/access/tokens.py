"""Tokens: the access of other machines.

Secrets are made and read by the API; here there are only their hashes. A code enrols as
many machines as use it in time, each with a token of its own under a name of its own. A
machine that enrols again shows its last token and keeps its name, so its jobs stay
its own; it has the role of the code at once, and the last secret counts until the new
one is used. No other machine gets the token of a worker (`worker_identity`), nor a name
that owns jobs. What has expired is forgotten when tokens are next changed. The code of
a start takes the place of the one before, unless that is in use.
"""

from typing import Any

from grass.broker.core.access import worker_identity
from grass.broker.core.calls import (
    BindToken,
    Done,
    Enrol,
    NewToken,
    RevokeToken,
    TouchToken,
)
from grass.broker.core.state import State
from grass.errors import Forbidden, NotFound, Refused, Unauthorized, UsageError
from grass.model.access import (
    HASH_BYTES,
    ROLES,
    START_CODE,
    Token,
    actor_of,
    check_token_name,
    is_start_name,
    may_work,
    numbered,
    rights_of,
    token_name,
)
from grass.model.worker import check_worker_id

MOST_TOKENS = 10_000
MOST_OF_CODE = 100
"""How many tokens one code may make: a leaked one must not use up all tokens."""


def new(state: State, call: NewToken) -> Token:
    """Make a token, or a code that machines get theirs with."""
    if call.role not in ROLES:
        known = ", ".join(ROLES)
        raise UsageError(f"there is no role `{call.role}`", f"roles: {known}")
    # A code owns no jobs.
    taken = set() if call.is_code else _owners(state, call.used_names)
    is_of_start = call.is_code and call.name == START_CODE
    if call.name is not None and not is_of_start:
        _check_free(state, check_token_name(call.name), taken)
    _check_room(state)
    _forget_expired(state)
    if is_of_start:
        _replace_start_code(state, call.actor)
        name = _free_name(state, START_CODE, taken)
    else:
        wanted = "code" if call.is_code else call.role
        name = call.name or _free_name(state, wanted, taken)
    made = Token(name, call.role, call.hash, state.now_us, call.actor)
    made.is_code, made.expires_at = call.is_code, call.expires_at
    if call.worker is not None:
        _unbind(state, call.worker)
        made.worker = call.worker
    _save(state, made)
    state.note_by(
        call.actor, "token-created", name=name, role=call.role, code=call.is_code
    )
    return made


def _unbind(state: State, worker: str) -> None:
    """Have no other token be a worker's: its machine has lost that one."""
    other = _bound_to(state, worker)
    if other is not None:
        other.worker = None
        _save(state, other)


def revoke(state: State, call: RevokeToken) -> Done:
    """Revoke a token or a code."""
    if call.name not in state.tokens or worker_identity.is_proof(call.name):
        raise NotFound(
            f"there is no token `{call.name}`", "`grass token list` lists all"
        )
    _retire(state, call.name)
    _forget_expired(state)
    state.note_by(call.actor, "token-revoked", name=call.name)
    return Done()


def enrol(state: State, call: Enrol) -> Token:
    """Exchange a code for a token of the machine's own."""
    code = state.tokens.get(call.code)
    if code is None or not code.is_code or not code.holds(state.now_us):
        raise Unauthorized(*WRONG_CODE)
    shown = _shown(state, call)
    worker = _worker_of(call, code, shown)
    bound = _bound_to(state, worker)
    if worker is not None:
        worker_identity.check(state, check_worker_id(worker), bound, call)
    previous = bound or shown
    _check_room(state)
    if previous is None:
        _check_code(code)
        code.made += 1
    _forget_expired(state)
    code.used_at = state.now_us
    _save(state, code)
    made = _enrolled(state, call, code, previous)
    made.worker, name = worker, made.name
    _save(state, made)
    works = worker if may_work(code.role) else None
    facts: dict[str, Any] = {"worker": works, "role": code.role, "code": code.name}
    state.note_by(actor_of(name), "machine-joined", name=name, **facts)
    return made


def _shown(state: State, call: Enrol) -> Token | None:
    """Return the token that a machine shows, if it is valid and the machine's own."""
    token = state.tokens.get(call.shown_name)
    if token is None or token.is_code or not token.holds(state.now_us):
        return None
    if call.shown is None or not token.fits(call.shown):
        return None
    # A home that was copied has the token of the first, but maybe an id of its own.
    return token if token.worker in (None, call.worker) else None


def _worker_of(call: Enrol, code: Token, shown: Token | None) -> str | None:
    """Return the worker that the token is bound to.

    A code gives a worker's token only if its role may work. A worker that becomes a
    client stays bound to its machine, which may work again one day.
    """
    if may_work(code.role):
        return call.worker
    return None if shown is None else shown.worker


def _enrolled(state: State, call: Enrol, code: Token, previous: Token | None) -> Token:
    """Make a token, or renew the one that there is."""
    hashes, now = call.hash, state.now_us
    if previous is None:
        taken = _owners(state, call.used_names)
        if may_work(code.role):
            # A worker has the name of its token, which no other worker may have.
            others = (one for one in state.workers.values() if one.id != call.worker)
            taken.update(actor_of(one.name) for one in others)
        name = _free_name(state, token_name(call.name), taken)
        return Token(name, code.role, hashes, now, code.created_by)
    if call.shown is not None and _keeps_previous(previous, call.shown, code.role):
        hashes += call.shown
    made = Token(previous.name, code.role, hashes, now, code.created_by)
    made.used_at = previous.used_at
    return made


def _keeps_previous(previous: Token, shown: bytes, role: str) -> bool:
    """Tell whether the secret that was shown counts on until the new one is used.

    Not for more than it was good for. Only a worker would be locked out with its jobs
    if the reply were lost; a client then joins under another name.
    """
    gained = rights_of(role) - rights_of(previous.role)
    return previous.fits(shown) and (previous.worker is not None or not gained)


def bind(state: State, call: BindToken) -> Done:
    """Tie a token to the worker that uses it first."""
    token = state.tokens.get(call.name)
    if token is None or token.is_code:
        raise Unauthorized("this token counts no more", "join again")
    if token.worker == call.worker:
        return Done(changed=False)
    other = _bound_to(state, check_worker_id(call.worker))
    # Nothing proves here that it is the machine that had a known worker before.
    is_known = call.worker in state.workers
    if token.worker is not None or other is not None or is_known:
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
        if token.ends_previous(call.hash):
            token.hash = token.hash[:HASH_BYTES]
        _save(state, token)
        _drop_proof(state, token.worker)


WRONG_CODE = (
    "this code is wrong or has expired",
    "get a new line with `grass token new` on the broker's machine",
)
"""The same message for both: a guess learns nothing."""


def _forget(state: State, name: str) -> None:
    """Drop a token without a line in the journal."""
    del state.tokens[name]
    state.batch.changes.tokens.pop(name, None)
    state.batch.changes.removed_tokens.append(name)
    state.batch.urgent = True


def forget_worker(state: State, worker: str) -> None:
    """Drop the tokens of a worker that is forgotten; a client that it was stays."""
    bound = [one for one in state.tokens.values() if one.worker == worker]
    for token in bound:
        if may_work(token.role):
            _forget(state, token.name)
        else:
            token.worker = None
            _save(state, token)
    _drop_proof(state, worker)


def _retire(state: State, name: str) -> None:
    """Revoke a token; the hash of a known worker's is kept as a proof."""
    kept = worker_identity.proof_of(state, state.tokens[name])
    _forget(state, name)
    if kept is not None:
        _save(state, kept)


def _drop_proof(state: State, worker: str | None) -> None:
    if worker is not None and worker_identity.proof_name(worker) in state.tokens:
        _forget(state, worker_identity.proof_name(worker))


def _save(state: State, token: Token) -> None:
    state.tokens[token.name] = token
    state.batch.changes.tokens[token.name] = token
    state.batch.urgent = True


def _check_free(state: State, name: str, taken: set[str]) -> None:
    known = state.tokens.get(name)
    if known is not None and known.holds(state.now_us):
        raise Refused(
            f"there is a token `{name}` already",
            f"`grass token revoke {name}`, or choose another name",
        )
    if actor_of(name) in taken:
        raise Refused(
            f"an earlier token `{name}` has jobs here",
            "choose another name for this one",
        )


def _check_room(state: State) -> None:
    if len(state.tokens) >= MOST_TOKENS:
        raise Refused(
            f"there are {MOST_TOKENS} tokens already", "`grass token revoke` some"
        )


def _check_code(code: Token) -> None:
    if code.made >= MOST_OF_CODE:
        raise Refused(
            f"{MOST_OF_CODE} machines have joined with this code already",
            "get a new line with `grass token new` on the broker's machine",
        )


def _forget_expired(state: State) -> None:
    expired = [one for one in state.tokens.values() if not one.holds(state.now_us)]
    for token in expired:
        if not worker_identity.is_proof(token.name):
            _retire(state, token.name)


def _replace_start_code(state: State, actor: str) -> None:
    """Revoke the code of an earlier start, if no machine has joined with it."""
    unused = [
        one.name
        for one in state.tokens.values()
        if one.is_code and one.used_at is None and is_start_name(one.name)
    ]
    for name in unused:
        _forget(state, name)
        state.note_by(actor, "token-revoked", name=name)


def _bound_to(state: State, worker: str | None) -> Token | None:
    if worker is None:
        return None
    bound = (one for one in state.tokens.values() if one.worker == worker)
    return next((one for one in bound if one.holds(state.now_us)), None)


def _free_name(state: State, wanted: str, taken: set[str]) -> str:
    """Return the name, or with a number if it is taken: `laptop`, `laptop-2`."""
    free = (
        name
        for name in numbered(wanted)
        if name not in state.tokens and actor_of(name) not in taken
    )
    return next(free)


def _owners(state: State, used_names: frozenset[str]) -> set[str]:
    """Return all owners of jobs: a token with their name would own the jobs."""
    owners = {actor_of(name) for name in used_names}
    owners.update(job.owner for job in state.jobs.values())
    owners.update(arrival.call.actor for arrival in state.bulk.enqueues)
    return owners
