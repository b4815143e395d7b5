"""The brokers that this machine has joined, each with the token it got there.

One file in the state directory, which only its owner may read, the last joined broker
first. Another one has the cluster that this machine's own broker is of, where several
share a database: there it calls whichever of them leads. A broker is known by its pin,
the hash of its public key: its addresses are only hints of where it may be found. A
file is changed under a lock, after it was read anew, and replaced whole, so that
neither a crash nor a second caller leaves half of it.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from grass.client.json_codec import decoded, encoded
from grass.client.private_files import read_file, replace_private
from grass.errors import Forbidden
from grass.model.addresses import Address, read_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.config import Home

_REST = 0o077
"""The permissions of all users but the owner."""


class JoinedBroker(NamedTuple):
    """A broker that was joined."""

    pin: str
    token: str
    role: str
    name: str
    """What this machine, or its token, is called there."""
    addresses: tuple[Address, ...]
    """Where it was found, the last place first."""
    cluster: str
    joined_at: str

    def __repr__(self) -> str:
        """Leave the token out: this may be written into a log."""
        return f"JoinedBroker({self.place}, pin={self.pin}, name={self.name})"

    @property
    def place(self) -> str:
        """Where it is looked for first."""
        return str(self.addresses[0])


class Credentials:
    """The content of the file, and changes of it."""

    def __init__(
        self, home: Home, known: Sequence[JoinedBroker], own: Sequence[JoinedBroker]
    ) -> None:
        """Hold what was read; `load` reads it."""
        self._home = home
        self.all = list(known)
        """Every broker that was joined, the last one first."""
        self.own = own[0] if own else None
        """The cluster of this machine's own broker, if it may have several."""

    @classmethod
    def load(cls, home: Home) -> Self:
        """Read the file; without one no broker was joined."""
        return cls(home, _read(home.brokers), _read(home.own_cluster))

    def current(self) -> JoinedBroker | None:
        """Return the broker that commands call by default."""
        return self.all[0] if self.all else None

    def by_pin(self, pin: str) -> JoinedBroker | None:
        """Find a broker by the hash of its key."""
        return next((one for one in self._everything if one.pin == pin), None)

    def by_address(self, address: Address) -> JoinedBroker | None:
        """Find the broker that was last seen at an address."""
        known = self._everything
        return next((one for one in known if address in one.addresses), None)

    @property
    def _everything(self) -> list[JoinedBroker]:
        return self.all if self.own is None else [*self.all, self.own]

    def set_own(self, known: JoinedBroker) -> None:
        """Note the cluster of this machine's own broker."""
        with _Lock(self._home):
            _replace(self._home.own_cluster, [known])
        self.own = known

    def set_addresses(self, pin: str, told: Sequence[Address]) -> None:
        """Note where the brokers of a cluster are, as one of them told."""
        known = self.by_pin(pin)
        if known is None or set(known.addresses) == set(told) or not told:
            return
        with _Lock(self._home):
            for path in (self._home.brokers, self._home.own_cluster):
                found = _read(path)
                new = [
                    one._replace(addresses=tuple(told)) if one.pin == pin else one
                    for one in found
                ]
                if new != found:
                    _replace(path, new)

    def add(self, known: JoinedBroker) -> JoinedBroker:
        """Note a broker that was joined, or joined again, before all others."""
        with _Lock(self._home):
            self.all = _read(self._home.brokers)
            before = next((one for one in self.all if one.pin == known.pin), None)
            earlier = () if before is None else before.addresses
            places = dict.fromkeys((*known.addresses, *earlier))
            added = known._replace(addresses=tuple(places))
            self._write([added, *(one for one in self.all if one.pin != known.pin)])
        return added

    def remove(self, pin: str) -> None:
        """Forget a broker."""
        with _Lock(self._home):
            found = _read(self._home.brokers)
            self._write([one for one in found if one.pin != pin])

    def _write(self, known: list[JoinedBroker]) -> None:
        _replace(self._home.brokers, known)
        self.all = known


class _Lock:
    """A lock on the file; the lock of the folder itself is the daemon's."""

    def __init__(self, home: Home) -> None:
        self._path = home.brokers_lock
        self._descriptor = -1

    def __enter__(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o600)
        # The next process must be able to open it, whatever umask this one has.
        os.fchmod(self._descriptor, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def __exit__(self, *_error: object) -> None:
        os.close(self._descriptor)


def _replace(path: str, known: list[JoinedBroker]) -> None:
    text = encoded([_document(one) for one in known]).decode("ascii")
    replace_private(path, text + "\n")


def _read(path: str) -> list[JoinedBroker]:
    remedy = "remove it, and `grass join` the broker again"
    return read_file(path, _parsed, remedy, _check_private) or []


def _parsed(data: bytes) -> list[JoinedBroker]:
    return [_known(one) for one in decoded(data)]


def _check_private(path: str, state: os.stat_result) -> None:
    """Refuse a file that other users may have read or written."""
    if state.st_uid != os.geteuid():
        raise Forbidden(
            f"{path} belongs to another user (uid {state.st_uid})",
            "set GRASS_HOME to a folder of your own",
        )
    if state.st_mode & _REST:
        raise Forbidden(
            f"others may read the tokens in {path}",
            f"`chmod 600 {path}`, and `grass join` again if others use this machine",
        )


def _known(told: dict[str, Any]) -> JoinedBroker:
    addresses = tuple(read_address(text) for text in told["addresses"])
    texts = [told[name] for name in ("pin", "token", "role", "name", "cluster")]
    if not addresses or not all(isinstance(text, str) for text in texts):
        raise ValueError("a field is missing")
    pin, token, role, name, cluster = texts
    if not (token.isascii() and token.isprintable()):
        raise ValueError("this is not a token")
    return JoinedBroker(
        pin, token, role, name, addresses, cluster, str(told["joined_at"])
    )


def _document(known: JoinedBroker) -> dict[str, Any]:
    places = [str(address) for address in known.addresses]
    return {**known._asdict(), "addresses": places}
