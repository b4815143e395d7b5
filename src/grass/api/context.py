"""What routes use of the daemon, and what requests share."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

from starlette.requests import HTTPConnection

from grass.api.budget import body_budget, local_body_budget
from grass.api.tcp_connections import TcpConnections, WrongCodes
from grass.broker.shell.pools import PoolRunner
from grass.broker.shell.service import Broker
from grass.queries.cluster_documents import ForgottenNames
from grass.queries.documents import JsonObject
from grass.queries.feed.feed import Feed
from grass.queries.output.line_index import LineIndexes
from grass.settings import Settings, default_settings


class TcpEndpoint(NamedTuple):
    """The address and key of a broker for other machines."""

    address: str
    pin: str


class StandbyOffer(NamedTuple):
    """What a machine gets that joins as a standby."""

    key: Callable[[], str]
    """Reads the brokers' key, as text."""
    store: str
    """The database, without a password."""


class WebLink(NamedTuple):
    """Where a browser finds the dashboard."""

    url: str
    """What a browser opens; it logs in with `token`, where there is one."""
    token: str | None
    """None: beyond loopback, where a person logs in with a token of their own."""
    host: str
    port: int
    fingerprint: str | None = None
    """Of the certificate, as browsers show it; None: there is none."""


class WebControl(Protocol):
    """Opens and closes the daemon's web server."""

    async def open(
        self, host: str | None, port: int | None, actor: str, role: str
    ) -> WebLink:
        """Listen for browsers, and return a link for this caller."""

    async def close(self) -> bool:
        """Stop listening, and log every browser out."""


class Context(NamedTuple):
    """The daemon behind the API."""

    broker: Broker
    worker: str
    """The id of this daemon's own worker; empty where it has none."""
    version: str
    started_at: int
    stop: Callable[[], None]
    settings: Settings = default_settings()
    """The daemon's settings."""
    tcp: TcpEndpoint | None = None
    """None: the daemon serves only its own machine."""
    web: WebControl | None = None
    """None: the daemon has no web server."""
    findings: Callable[[], Coroutine[Any, Any, JsonObject]] | None = None
    """Checks the daemon's machine; None: nothing does."""
    pools: PoolRunner | None = None
    """Asks engines for workers; None: nothing does."""
    standby: StandbyOffer | None = None
    """For machines that join as a standby; None: the broker has its store alone."""


def context_of(request: HTTPConnection) -> Context:
    """Return the daemon behind a request."""
    context = request.app.state.context
    assert isinstance(context, Context)
    return context


class ApiState:
    """What the requests to one daemon share."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()
        """Set when the daemon is about to stop."""
        self.connections = TcpConnections()
        self.bodies = body_budget()
        self.local_bodies = local_body_budget()
        self.wrong_codes = WrongCodes()
        self.naming = asyncio.Lock()
        """Held while a new token's name is chosen."""
        self.forgotten_names = ForgottenNames()
        self.feed: Feed | None = None
        """What streams are sent from; made for the first who looks."""
        self.line_indexes = LineIndexes()
        self._searching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.guest_tasks: dict[int, asyncio.Future[Any]] = {}
        """By job: what is done for a guest between its requests."""

    def searching(self, actor: str) -> asyncio.Lock:
        """Return the lock that is held while a caller's search runs."""
        lock = self._searching.get(actor)
        if lock is None:
            lock = self._searching[actor] = asyncio.Lock()
        return lock


def api_state(request: HTTPConnection) -> ApiState:
    """Return what requests to the same daemon share."""
    state = request.app.state.api
    assert isinstance(state, ApiState)
    return state
