"""What routes use of the daemon, and what requests share."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.requests import HTTPConnection

from grass.api.budget import body_budget, local_body_budget
from grass.api.tcp_connections import TcpConnections, WrongCodes
from grass.broker.shell.service import Broker
from grass.queries.cluster_documents import ForgottenNames
from grass.settings import Settings, default_settings


class TcpEndpoint(NamedTuple):
    """The address and key of a broker for other machines."""

    address: str
    pin: str


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
        self.guest_tasks: dict[int, asyncio.Future[Any]] = {}
        """By job: what is done for a guest between its requests."""


def api_state(request: HTTPConnection) -> ApiState:
    """Return what requests to the same daemon share."""
    state = request.app.state.api
    assert isinstance(state, ApiState)
    return state
