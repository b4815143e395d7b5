"""Makes the secrets of tokens and codes; the broker's core gets only their hashes."""

import secrets
import time

from grass.broker.core.calls import NewToken
from grass.broker.shell.service import Broker
from grass.model.access import DEFAULT_ROLE, hash_of

_CODE_BYTES = 16
_TOKEN_BYTES = 32
_CODE_HOURS = 1.0
_HOUR_US = 3_600 * 1_000_000


def new_secret(*, is_code: bool = False) -> str:
    """Return a random secret."""
    return secrets.token_urlsafe(_CODE_BYTES if is_code else _TOKEN_BYTES)


def new_token_call(
    actor: str,
    secret: str,
    role: str,
    name: str | None,
    *,
    is_code: bool,
    hours: float | None = None,
) -> NewToken:
    """Return the call that makes a token, or a code, which is valid for an hour."""
    if is_code and hours is None:
        hours = _CODE_HOURS
    now = time.time_ns() // 1000
    return NewToken(
        actor=actor,
        role=role,
        hash=hash_of(secret),
        name=name,
        is_code=is_code,
        expires_at=None if hours is None else now + int(hours * _HOUR_US),
    )


async def new_code(
    broker: Broker, actor: str, role: str = DEFAULT_ROLE, name: str | None = None
) -> str:
    """Make a code that machines join with."""
    secret = new_secret(is_code=True)
    await broker.call(new_token_call(actor, secret, role, name, is_code=True))
    return secret
