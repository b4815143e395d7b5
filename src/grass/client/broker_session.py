"""Calls to one broker over one connection, and the one rule by which they are repeated.

Which broker that is: the one that was asked for, `GRASS_BROKER`, the one that this
machine has joined, or else this machine's own daemon, which may have to be started.

**The rule.** A call that may be made twice is repeated while the daemon is away, for up
to `RECONNECT_S` after the connection broke: reading changes nothing, and an enqueue
carries a key by which the daemon recognises it. Any other call is sent once. A daemon
that was never reached is not waited for, nor one that `grass stop` has stopped.

Where a cluster has several brokers, one that does not lead answers with who does, and
has done nothing: any call is sent there, or again once somebody leads.
"""

from __future__ import annotations

import os
import time

from grass.client.connection import (
    THIS_DAEMON,
    Broken,
    HttpConnection,
    last_answer,
    open_connection,
)
from grass.client.json_codec import query
from grass.config import BROKER_VARIABLE, LOCAL, Home, home
from grass.errors import LeadLost, NoAnswer, NoBroker, NoDaemon, NoDatabase, Stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self, TypeVar

    from grass.client.json_codec import Document
    from grass.client.patience import Outage
    from grass.client.tls_connection import BrokerRoute
    from grass.model.addresses import Invitation

    T = TypeVar("T")

RECONNECT_S = 30.0
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_LEADER_PAUSE_S = 0.25
"""How long to wait before a broker is asked again who leads."""
_LASTED_S = 3.0
"""After so long a call that waits or follows was not broken by the same outage."""
_PAGE = 1000


class BrokenLater(Broken):
    """A call that lasted was broken off."""


class BrokerSession:
    """The connection to one broker."""

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
        self.answer_s: float | None = None
        """How long the daemon may be silent; None: as long as usual."""
        self.waits_for_leader = True
        """Whether a call is made once somebody leads, where nobody does."""
        self._asked = broker
        self._route = self._first_route = _route(self.home, broker)
        self._may_start = may_start
        self._connection: HttpConnection | None = None
        self._was_connected = False
        self._outage: Outage | None = None
        self._outage_limit_s: float | None = None
        """How long the present outage may last; None: there is none."""

    @property
    def outage(self) -> Outage:
        """The notice that is given while the daemon is away."""
        if self._outage is None:
            from grass.client.patience import Outage

            self._outage = Outage()
        return self._outage

    @property
    def remote(self) -> bool:
        """Whether the broker is reached over the network."""
        return self._route is not None

    @property
    def route(self) -> BrokerRoute | None:
        """The way to another machine's broker; None: this machine's daemon."""
        return self._route

    @property
    def peer(self) -> str:
        """What answers the calls, in words."""
        route = self._route
        return THIS_DAEMON if route is None else f"the broker at {route.place}"

    @classmethod
    def invited(cls, place: Home, invitation: Invitation) -> Self:
        """Return a client of a broker that is to be joined, maybe once more."""
        from grass.client.tls_connection import invited

        client = cls(place, broker=LOCAL)
        client._route = client._first_route = invited(place, invitation)
        return client

    def pages(
        self, path: str, field: str, cursor: str, wanted: dict[str, object]
    ) -> Iterator[Document]:
        """Read a list of the API, a page at a time."""
        while True:
            page = self.read(path + query(limit=_PAGE, **wanted))
            yield from page[field]
            if page["next"] is None:
                return
            wanted = {**wanted, cursor: page["next"]}

    def beside(self, *, may_start: bool | None = None) -> Self:
        """Return another client of the same broker, for use in another thread.

        One that may not start a daemon does not wait for one before it was connected.
        """
        may_start = self._may_start if may_start is None else may_start
        other = type(self)(self.home, may_start=may_start, broker=self._asked)
        other._was_connected = self._was_connected and may_start  # noqa: SLF001
        other._outage = self.outage  # noqa: SLF001
        return other

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; a later call connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def break_off(self) -> None:
        """Break the call off that another thread waits for; it raises `Broken`."""
        connection = self._connection
        if connection is not None:
            connection.break_off()

    def read(self, path: str) -> Document:
        """Read something."""
        return self.idempotent("GET", path)

    def idempotent(self, method: str, path: str, body: object = None) -> Document:
        """Make a call that has the same effect when it is made twice."""
        return self.repeat(lambda: self.once(method, path, body))

    def write(self, method: str, path: str, body: object = None) -> Document:
        """Change something; a call that broke off may or may not have done so."""
        try:
            document: Document = self.once(method, path, body)
        except Broken:
            raise self._interrupted() from None
        return document

    def once(
        self, method: str, path: str, body: object = None, *, may_last: bool = False
    ) -> Any:  # noqa: ANN401
        """Send a request and read its reply; raises `Broken` where that broke off.

        A body that depends on the way is a function, called when that is known.
        """

        def send(connection: HttpConnection) -> Any:  # noqa: ANN401
            known = body() if callable(body) else body
            return connection.exchange(method, path, known, may_last=may_last)

        return self._send(send)

    def content(self, method: str, path: str, **body: object) -> bytes:
        """Send a request whose reply is bytes; raises `Broken` where it broke off."""
        return self._send(
            lambda connection: b"".join(connection.stream(method, path, body))
        )

    def stream(self, path: str) -> tuple[dict[str, str], Iterator[bytes]]:
        """Request something that comes in pieces; return its headers and the pieces."""
        pieces = self._send(lambda connection: connection.stream("GET", path))
        assert self._connection is not None
        return self._connection.headers, pieces

    def repeat(self, call: Callable[[], T], limit_s: float = 0.0) -> T:
        """Make a call that may be made twice until a daemon has answered it.

        A daemon that is away is waited for longer if `limit_s` is more than usual.
        """
        try:
            return self._repeated(call, max(RECONNECT_S, limit_s))
        finally:
            self._end_outage()

    def outlast(self, call: Callable[[], T], limit_s: float = 0.0) -> T:
        """Do as `repeat` does for a call that lasts, also while the database is away.

        After a call that lasted, the next outage is another one.
        """
        away: NoDatabase | None = None

        def once() -> T:
            nonlocal away
            began = time.monotonic()
            try:
                return call()
            except NoDatabase as error:
                away = error
                raise Broken(error.message) from None
            except Broken as broken:
                if time.monotonic() - began > _LASTED_S:
                    raise BrokenLater(*broken.args) from None
                raise

        try:
            return self.repeat(once, limit_s)
        except NoDaemon:
            if away is not None:
                raise away from None
            raise

    def _repeated(self, call: Callable[[], T], limit_s: float) -> T:
        deadline, pause_s = None, _FIRST_PAUSE_S
        error: NoDaemon = self._interrupted()
        while True:
            began = time.monotonic()
            try:
                return call()
            except Broken as broken:
                lasted = isinstance(broken, BrokenLater)
                if lasted or time.monotonic() - began > RECONNECT_S:
                    # It was answered for a long time: this is another outage.
                    deadline, pause_s = None, _FIRST_PAUSE_S
            except NoAnswer:
                raise
            except NoDaemon as absent:
                # A worker's own daemon that says its broker is away has answered.
                answered = isinstance(absent, NoBroker) and not self.remote
                if answered or not self._was_connected or self._is_stopped():
                    raise
                error = absent if self.remote else error
            if deadline is None:
                deadline = time.monotonic() + limit_s
            if time.monotonic() > deadline:
                raise error from None
            self._outage_limit_s = limit_s
            self._note_outage()
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _send(self, send: Callable[[HttpConnection], T]) -> T:
        deadline = 0.0
        while True:
            was_named = self._route is not self._first_route
            try:
                connection = self._connected()
            except NoBroker:
                # A leader that was named may be gone: the others know, or soon will.
                if was_named:
                    deadline = deadline or time.monotonic() + RECONNECT_S
                if time.monotonic() > deadline:
                    raise
                time.sleep(_LEADER_PAUSE_S)
                continue
            try:
                return send(connection)
            except Broken:
                self._leave()
                raise
            except Stopping:
                # The daemon that comes after it is to be asked.
                self._leave()
                raise Broken("the daemon is stopping") from None
            except LeadLost as lost:
                deadline = deadline or time.monotonic() + RECONNECT_S
                waits = bool(lost.leader) or self.waits_for_leader
                if time.monotonic() > deadline or self._asked == LOCAL or not waits:
                    raise
                self._follow(lost.leader)
            finally:
                self._note_version(connection)

    def _leave(self) -> None:
        """Close the connection; the next one is to any broker of the cluster."""
        self.close()
        self._route = self._first_route

    def _follow(self, leader: str) -> None:
        """Go to the broker that leads, or wait for one to do so."""
        from grass.client.tls_connection import address_of, route_past, route_to_leader

        at_leader = self._route is not None and self._route.leads_to(leader)
        asked = address_of(self._connection)
        self._leave()
        if leader and not at_leader:
            self._route = route_to_leader(self.home, leader)
        else:
            time.sleep(_LEADER_PAUSE_S)
            # It may be the one that does not reach the database: the others may know.
            self._route = route_past(self.home, asked) or self._first_route

    def _connected(self) -> HttpConnection:
        if self._connection is not None and not self._connection.is_ready():
            self._leave()
        if self._connection is None:
            self._connection = self._opened()
            if self._asked == LOCAL:
                self._connection.ask_this_daemon()
            self._connection.answer_s = self.answer_s
            self._was_connected = True
            if self._outage is not None:
                self._connection.tell = self._outage.tell
            self._end_outage()
        return self._connection

    def _opened(self) -> HttpConnection:
        try:
            return self._open()
        except NoBroker:
            self._route = self._first_route
            raise

    def _open(self) -> HttpConnection:
        route = self._route
        if route is not None:
            connection = route.open(self._note_outage)
            connection.peer = self.peer
            connection.next_step = "look at its machine, then try again"
            connection.may_be_replaced = route.leads_to_several
            connection.watch(
                lambda: route.open_beside(connection, connection.note_silence)
            )
            return connection
        found = open_connection(self.home.socket)
        if found is not None:
            return found
        from grass.client import autostart

        if self._may_start:
            return autostart.connect(self.home)
        return autostart.connect_running(self.home)

    def _end_outage(self) -> None:
        self._outage_limit_s = None
        if self._outage is not None:
            self._outage.end(self)

    def _note_outage(self) -> None:
        """Give notice of an outage, if there is one, when that is due."""
        if self._outage_limit_s is None:
            return
        back = f"going on if it is back within {self._outage_limit_s:.0f} s"
        self.outage.note(self, f"{self.peer} cannot be reached; {back}")

    def _is_stopped(self) -> bool:
        return not self.remote and os.path.exists(self.home.stopped)

    def _note_version(self, connection: HttpConnection) -> None:
        version = connection.headers.get("grass-version")
        if version is not None:
            self.daemon_version = version
            last_answer.note(self.peer, version)
        brokers = connection.headers.get("grass-brokers")
        if brokers is not None and self._route is not None:
            from grass.client.tls_connection import note_brokers

            note_brokers(self.home, connection, brokers)

    def _interrupted(self) -> NoDaemon:
        return NoDaemon(
            f"{self.peer} went away before it answered",
            "see `grass show`, then try again",
        )


def _route(home: Home, broker: str | None) -> BrokerRoute | None:
    """Return the way to another machine's broker; None when none is meant."""
    origin = "--broker" if broker is not None else BROKER_VARIABLE
    asked = os.environ.get(BROKER_VARIABLE) or None if broker is None else broker
    if asked == LOCAL or (asked is None and not os.path.exists(home.brokers)):
        return None
    from grass.client.tls_connection import route

    return route(home, asked, origin)
