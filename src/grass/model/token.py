"""Tokens: how a caller from another machine proves who it is.

A token's text is `NAME.SECRET`. Only the secret's hash is kept, so that whoever reads
the database cannot call. A code is exchanged for a token of the caller's own, and is
good for nothing else; it is written without its name.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator
from itertools import count

import msgspec

from grass.errors import UsageError

LONGEST_NAME = 63
HASH_BYTES = 32
START_CODE = "start"
"""The name of the code that a broker gets when it is started, until the next start."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_OTHER = re.compile(r"[^A-Za-z0-9_-]+")


class Token(msgspec.Struct):
    """A token or a code, as the broker knows it."""

    name: str
    role: str
    hash: bytes
    """SHA-256 of the secret; the secret is random and long, so no salt is needed.

    Behind it stands that of the former secret, until the renewed one is used: a reply
    that is lost must not lock its machine out.
    """
    created_at: int
    created_by: str
    expires_at: int | None = None
    is_code: bool = False
    worker: str | None = None
    """The worker that alone may use it; None: not bound to one, or not yet."""
    used_at: int | None = None
    made: int = 0
    """How many tokens came of it, if it is a code."""

    def holds(self, now_us: int) -> bool:
        """Tell whether its time is not over."""
        return self.expires_at is None or now_us < self.expires_at

    def fits(self, hashed: bytes) -> bool:
        """Compare with a secret's hash, in a time that tells nothing."""
        newest = hmac.compare_digest(self.hash[:HASH_BYTES], hashed)
        former = hmac.compare_digest(self.hash[HASH_BYTES:], hashed)
        # Where there is no former secret, nothing must not fit nothing.
        return len(hashed) == HASH_BYTES and (newest | former)

    def ends_former(self, hashed: bytes) -> bool:
        """Tell whether a former secret counts no more once this one was used."""
        newest, former = self.hash[:HASH_BYTES], self.hash[HASH_BYTES:]
        return bool(former) and hmac.compare_digest(newest, hashed)


def hash_of(secret: str) -> bytes:
    """Give what is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def token_text(name: str, secret: str) -> str:
    """Write a token as its holder keeps it."""
    return f"{name}.{secret}"


def split_token(text: str) -> tuple[str, str]:
    """Give the name and the secret of a token's text; either may be nonsense."""
    name, _, secret = text.partition(".")
    return name, secret


def actor_of(name: str) -> str:
    """Name the holder of a token as the journal does."""
    return f"token:{name}"


def check_token_name(name: str) -> str:
    """Refuse what cannot name a token."""
    if len(name) > LONGEST_NAME or not _NAME.fullmatch(name):
        raise UsageError(
            f"`{name[: LONGEST_NAME + 1]}` cannot name a token",
            f"use letters, digits, `_` and `-`, at most {LONGEST_NAME}",
        )
    return name


def is_start_name(name: str) -> bool:
    """Tell a start's code by its name; it has a number while a used one is there."""
    first, _, number = name.partition("-")
    return first == START_CODE and (not number or number.isdecimal())


def no_start_name(name: str) -> UsageError:
    """Refuse to give a code of somebody's own the name of a start's."""
    return UsageError(
        f"`{name}` is what the code of a start is called; the next start replaces it",
        "choose another name for this one",
    )


def numbered(wanted: str) -> Iterator[str]:
    """Give a name and those like it: `laptop`, `laptop-2`, `laptop-3`."""
    yield wanted
    for number in count(2):
        ending = f"-{number}"
        yield wanted[: LONGEST_NAME - len(ending)] + ending


def token_name(machine: str) -> str:
    """Make a token's name of a machine's, whatever that is."""
    plain = _OTHER.sub("-", machine).strip("-_")[:LONGEST_NAME]
    return plain or "machine"
