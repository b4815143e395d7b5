"""Calls over one connection: made when first needed, sent again where that is safe.

Which broker that is: the one that was asked for, `GRASS_BROKER`, the one that this
machine has joined, or else this machine's own daemon, which may have to be started.

A call that a restart of the daemon cut off is sent again where that cannot do harm:
reading changes nothing, and an enqueue carries a key by which the daemon knows it.
"""

from __future__ import annotations

import os
import time

from grass.client import autostart
from grass.client.connection import Broken, Connection, quoted
from grass.config import BROKER_VARIABLE, LOCAL, Home, home
from grass.errors import NoAnswer, NoDaemon, Stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self, TypeVar

    from grass.client.outage import Outage
    from grass.client.remote import Route
    from grass.client.wire import Document
    from grass.model.addresses import Invitation

    T = TypeVar("T")

PATIENCE_S = 30.0
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5


class Caller:
    """The connection to one broker."""

    heard_version: str | None = None
    """The version of the daemon that answered this process last."""

    heard_from: str = ""
    """Which daemon that was."""

    def __init__(
        self,
        place: Home | None = None,
        *,
        may_start: bool = True,
        broker: str | None = None,
    ) -> None:
        """Choose the broker; nothing is connected yet.

        `broker` is an address or `local`, the daemon of the state directory.
        """
        self.home = home() if place is None else place
        self.daemon_version: str | None = None
        """The version of the daemon that answered last."""
        self._asked = broker
        self._route = _route(self.home, broker)
        self._may_start = may_start
        self._connection: Connection | None = None
        self._outage: Outage | None = None

    @property
    def outage(self) -> Outage:
        """What is told while a call that is being repeated finds nobody."""
        if self._outage is None:
            from grass.client.outage import Outage

            self._outage = Outage()
        return self._outage

    @property
    def remote(self) -> bool:
        """Whether the broker is reached over the network."""
        return self._route is not None

    @property
    def far_end(self) -> str:
        """What answers the calls, in words."""
        route = self._route
        return "the daemon" if route is None else f"the broker at {route.place}"

    @classmethod
    def invited(cls, place: Home, invitation: Invitation) -> Self:
        """Return a client of a broker that is to be joined, maybe once more."""
        from grass.client.remote import invited

        client = cls(place, broker=LOCAL)
        client._route = invited(place, invitation)
        return client

    def beside(self, *, may_start: bool | None = None) -> Self:
        """Return another client of the same broker, for use in another thread."""
        may_start = self._may_start if may_start is None else may_start
        aside = type(self)(self.home, may_start=may_start, broker=self._asked)
        aside._outage = self.outage  # noqa: SLF001 -- another one of its kind
        return aside

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Hang up."""
        self.close()

    def close(self) -> None:
        """Hang up; a later call connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def once(
        self, method: str, path: str, body: object = None, *, may_last: bool = False
    ) -> Any:  # noqa: ANN401
        """Send a request and read its reply; raises `Broken` where that broke off."""
        connection = self._connected()
        try:
            return connection.exchange(method, path, body, may_last=may_last)
        except Broken:
            self.close()
            raise
        except Stopping:
            # As good as a broken connection: the daemon's successor is to be asked.
            self.close()
            raise Broken("the daemon is stopping") from None
        finally:
            self._note_version(connection)

    def stream(self, path: str) -> tuple[dict[str, str], Iterator[bytes]]:
        """Ask for something that comes in pieces; gives its headers and the pieces."""
        connection = self._connected()
        try:
            pieces = connection.stream("GET", path)
        except Stopping:
            self.close()
            raise Broken("the daemon is stopping") from None
        except Broken:
            self.close()
            raise
        finally:
            self._note_version(connection)
        return connection.headers, pieces

    def read(self, path: str) -> Document:
        """Read something."""
        return self.again(lambda: self.once("GET", path))

    def write(self, method: str, path: str, body: object = None) -> Document:
        """Change something; a call that broke off may or may not have done so."""
        return self.only_once(lambda: self.once(method, path, body))

    def only_once(self, call: Callable[[], T]) -> T:
        """Make a call that must not be made twice."""
        try:
            return call()
        except Broken:
            raise self._interrupted() from None

    def again(self, call: Callable[[], T]) -> T:
        """Make a call that may be made twice; a kept connection may have gone stale."""
        try:
            return call()
        except Broken:
            return self.only_once(call)

    def patiently(
        self,
        call: Callable[[], T],
        cut_off_at: float | None = None,
        patience_s: float | None = None,
    ) -> T:
        """Repeat a call that broke off until a daemon has answered it.

        `cut_off_at` tells that an earlier one broke off: a daemon may be on its way up.
        """
        limit_s = PATIENCE_S if patience_s is None else patience_s
        if cut_off_at is not None and self._connection is None:
            self._begin_outage(limit_s)
        try:
            return self._repeated(call, cut_off_at, limit_s)
        finally:
            self._end_outage()

    def _repeated(
        self, call: Callable[[], T], cut_off_at: float | None, limit_s: float
    ) -> T:
        deadline, pause = None, _FIRST_PAUSE_S
        trouble = self._interrupted()
        if cut_off_at is not None:
            deadline = cut_off_at + limit_s
        while True:
            began = time.monotonic()
            try:
                return call()
            except Broken:
                now = time.monotonic()
                if deadline is None or now - began > PATIENCE_S:
                    deadline, pause = now + limit_s, _FIRST_PAUSE_S
            except NoAnswer:
                raise
            except NoDaemon as error:
                # Somebody else may be about to start it, but not after `grass stop`.
                if deadline is None or self._is_stopped():
                    raise
                if self.remote:
                    trouble = error
            if time.monotonic() > deadline:
                raise trouble from None
            self._begin_outage(limit_s)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.is_ready():
            self.close()
        if self._connection is None:
            self._connection = self._opened()
            if self._outage is not None:
                self._connection.tell = self._outage.tell
            self._end_outage()
        return self._connection

    def _opened(self) -> Connection:
        if self._route is not None:
            connection = self._route.open()
            connection.peer = self.far_end
            connection.next_step = "look at its machine, then try again"
            connection.watch(self._route.open)
            return connection
        if self._may_start:
            return autostart.connect(self.home)
        return autostart.connect_running(self.home)

    def _begin_outage(self, limit_s: float) -> None:
        back = f"going on if it is back within {limit_s:.0f} s"
        self.outage.begin(self, f"{self.far_end} cannot be reached; {back}")

    def _end_outage(self) -> None:
        if self._outage is not None:
            self._outage.end(self)

    def _is_stopped(self) -> bool:
        return not self.remote and os.path.exists(self.home.stopped)

    def _note_version(self, connection: Connection) -> None:
        told = connection.headers.get("grass-version")
        if told is not None:
            self.daemon_version = Caller.heard_version = told
            Caller.heard_from = self.far_end

    def _interrupted(self) -> NoDaemon:
        return NoDaemon(
            f"{self.far_end} went away before it answered",
            "see `grass show`, then try again",
        )


def _route(home: Home, broker: str | None) -> Route | None:
    """Return the way to another machine's broker; None when none is meant."""
    origin = "--broker" if broker is not None else BROKER_VARIABLE
    asked = os.environ.get(BROKER_VARIABLE) or None if broker is None else broker
    if asked == LOCAL or (asked is None and not os.path.exists(home.brokers)):
        return None
    from grass.client.remote import route

    return route(home, asked, origin)


def query(**fields: object) -> str:
    """Write what follows a path; what is None is left out, a list is repeated."""
    pairs = []
    for name, value in fields.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        pairs += [f"{name}={quoted(str(one))}" for one in values if one is not None]
    return "?" + "&".join(pairs) if pairs else ""
