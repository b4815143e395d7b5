"""Access from other machines: tokens, roles and rights.

Every route names the right it needs, and a role is a set of rights. A caller over the
local socket is the owner of the daemon and has all of them. A caller from another
machine shows a token, whose text is `NAME.SECRET`; the broker stores only the hash of
the secret. A code can only be exchanged for a token; it is written without its name.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import count

import msgspec

from grass.errors import UsageError

LONGEST_NAME = 63
HASH_BYTES = 32
START_CODE = "start"
"""The name of the code that a broker makes at its start; the next start replaces it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")


class Right(StrEnum):
    """A permission that a route asks for."""

    READ = "read"
    """Read jobs, queues, workers, output and the journal."""
    SUBMIT = "submit"
    """Enqueue jobs, and act on own jobs."""
    OPERATE = "operate"
    """Act on all jobs, on queues and units."""
    ADMIN = "admin"
    """Make and revoke tokens, forget workers, stop the daemon."""
    WORK = "work"
    """Run attempts, and declare views and units of the own machine."""
    LEAD = "lead"
    """Have the brokers' key, and be a broker of the cluster."""


ROLES: dict[str, frozenset[Right]] = {
    "read": frozenset({Right.READ}),
    "submit": frozenset({Right.READ, Right.SUBMIT}),
    "operate": frozenset({Right.READ, Right.SUBMIT, Right.OPERATE}),
    "admin": frozenset(Right),
    "worker": frozenset({Right.WORK}),
    "machine": frozenset({Right.WORK, Right.READ, Right.SUBMIT}),
    "broker": frozenset({Right.WORK, Right.READ, Right.SUBMIT, Right.LEAD}),
}
"""The rights of each role; a machine that joins gets `machine` by default."""

DEFAULT_ROLE = "machine"
EVERYTHING = frozenset(Right)


def rights_of(role: str) -> frozenset[Right]:
    """Return the rights of a role; none for one of a later version."""
    return ROLES.get(role, frozenset())


def may_work(role: str) -> bool:
    """Return whether a role may run attempts."""
    return Right.WORK in rights_of(role)


class Token(msgspec.Struct):
    """A token or a code, as the broker knows it."""

    name: str
    role: str
    hash: bytes
    """SHA-256 of the secret; the secret is random and long, so no salt is needed.

    The hash of the previous secret is appended until the renewed one is used, so that a
    lost reply does not lock the machine out.
    """
    created_at: int
    created_by: str
    expires_at: int | None = None
    is_code: bool = False
    worker: str | None = None
    """The only worker that may use it; None: not bound, or not yet."""
    used_at: int | None = None
    made: int = 0
    """How many tokens were made with it, if it is a code."""

    def holds(self, now_us: int) -> bool:
        """Return whether it has not expired."""
        return self.expires_at is None or now_us < self.expires_at

    def fits(self, hashed: bytes) -> bool:
        """Compare with a secret's hash, in constant time."""
        newest = hmac.compare_digest(self.hash[:HASH_BYTES], hashed)
        previous = hmac.compare_digest(self.hash[HASH_BYTES:], hashed)
        # Without a previous secret an empty hash must not fit.
        return len(hashed) == HASH_BYTES and (newest | previous)

    def admits(self, hashed: bytes, now_us: int) -> bool:
        """Return whether who has a secret with this hash may come in with it now."""
        return self.fits(hashed) and not self.is_code and self.holds(now_us)

    def ends_previous(self, hashed: bytes) -> bool:
        """Return whether the use of this secret invalidates a previous one."""
        newest, previous = self.hash[:HASH_BYTES], self.hash[HASH_BYTES:]
        return bool(previous) and hmac.compare_digest(newest, hashed)


def hash_of(secret: str) -> bytes:
    """Return the hash of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def token_text(name: str, secret: str) -> str:
    """Return the text of a token."""
    return f"{name}.{secret}"


def split_token(text: str) -> tuple[str, str]:
    """Return name and secret of a token's text; neither is checked."""
    name, _, secret = text.partition(".")
    return name, secret


def actor_of(name: str) -> str:
    """Return the actor that the journal names for a token."""
    return f"token:{name}"


def check_token_name(name: str) -> str:
    """Return a name for a token if it is valid."""
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise UsageError(
            f"`{name[: LONGEST_NAME + 1]}` cannot name a token",
            f"use letters, digits, `_` and `-`, at most {LONGEST_NAME}",
        )
    return name


def is_start_name(name: str) -> bool:
    """Return whether a name is that of a start's code, `start` or `start-2`."""
    first, _, number = name.partition("-")
    return first == START_CODE and (not number or number.isdecimal())


def no_start_name(name: str) -> UsageError:
    """Return the error for a code that would have the name of a start's code."""
    return UsageError(
        f"`{name}` is what the code of a start is called; the next start replaces it",
        "choose another name for this one",
    )


def numbered(wanted: str) -> Iterator[str]:
    """Yield a name and its variants: `laptop`, `laptop-2`, `laptop-3`."""
    yield wanted
    for number in count(2):
        ending = f"-{number}"
        yield wanted[: LONGEST_NAME - len(ending)] + ending


def token_name(machine: str) -> str:
    """Make a valid token name from a machine's name."""
    plain = _OTHER.sub("-", machine).strip("-_")[:LONGEST_NAME]
    return plain or "machine"
