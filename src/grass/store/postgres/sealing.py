"""Callers' environments, sealed before the database gets them.

Whoever reads the database, a dump or a replica of it finds no environment there: only
brokers have the key, `broker.key`, from which that of the seals is derived. A seal is
for one row, its owner and the machine that the environment came from. In another row,
or claimed by a job of another machine, it cannot be opened. Equal environments look
different each time, so nobody can try out what one might be.

The library for it is loaded with the first environment.
"""

import base64
import hmac
import os
from typing import Protocol

from grass.errors import NoDatabase
from grass.store.bodies import CorruptRow, json_text
from grass.store.changes import Env
from grass.store.postgres.address import DatabaseAddress
from grass.store.sql.dialect import Connection

KEY_MARK = "sealed_with"
"""The key of the row in `meta` that tells keys apart, and nothing of the key itself."""
_HINT = (
    "stand by (grass join --standby HOST:PORT/PIN/CODE), or copy that broker's key; if"
    " it is lost, `grass store forget-environments` gives up what it sealed"
)
_PREFIX = "sealed-1:"
_SALT = b"grass store"
_NONCE_BYTES = 12
_FIND = "SELECT value FROM meta WHERE key = ?"


class BrokersKey(Protocol):
    """The key that all brokers of a cluster have."""

    path: str
    """Where it is, for a person to read."""

    def read(self) -> bytes | None:
        """Return the secret; None: this broker has no key yet."""

    def create(self) -> bytes:
        """Make a key for a cluster that has none, and return its secret."""


class Sealing:
    """Seals environments, and opens them, with one key."""

    def __init__(self, secret: bytes) -> None:
        extracted = hmac.digest(_SALT, secret, "sha256")
        self._key = hmac.digest(extracted, b"environments\x01", "sha256")
        self.mark = hmac.digest(extracted, b"mark\x01", "sha256").hex()

    def sealed(self, env: Env) -> Env:
        """Return an environment as a database may have it."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        found = AESGCM(self._key).encrypt(nonce, env.body.encode(), _bound_to(env))
        return env._replace(body=_PREFIX + base64.b64encode(nonce + found).decode())

    def opened(self, env: Env) -> Env:
        """Return an environment as it was, if it belongs to this row."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            if not env.body.startswith(_PREFIX):
                raise ValueError(env.id)
            data = base64.b64decode(env.body.removeprefix(_PREFIX), validate=True)
            nonce, found = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
            body = AESGCM(self._key).decrypt(nonce, found, _bound_to(env))
        except (ValueError, InvalidTag):
            raise CorruptRow(
                f"environment {env.id} was not sealed for this row by the brokers"
            ) from None
        return env._replace(body=body.decode())


def _bound_to(env: Env) -> bytes:
    return json_text(["environment", env.id, env.owner, env.origin]).encode()


def sealing_of(db: Connection, key: BrokersKey, address: DatabaseAddress) -> Sealing:
    """Return the sealing of a database, inside of a transaction of the caller.

    The first broker of a database decides which key it is; others are refused.
    """
    known = db.execute(_FIND, (KEY_MARK,)).fetchone()
    secret = key.read()
    if secret is None and known is not None:
        raise NoDatabase(
            f"another broker uses the database {address.shown}, with a key, and there"
            f" is no {key.path}",
            _HINT,
        )
    sealing = Sealing(key.create() if secret is None else secret)
    if known is None:
        save = "INSERT INTO meta (key, value) VALUES (?, ?)"
        db.execute(save, (KEY_MARK, sealing.mark))
    elif not hmac.compare_digest(known[0], sealing.mark):
        raise NoDatabase(
            f"another broker uses the database {address.shown}, with another key than"
            f" {key.path}",
            _HINT,
        )
    return sealing


def forget_environments(db: Connection) -> int:
    """Remove all environments and the mark of their key; return how many."""
    removed = db.execute("DELETE FROM envs").rowcount
    db.execute("DELETE FROM meta WHERE key = ?", (KEY_MARK,))
    return removed
