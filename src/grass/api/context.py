"""What routes use of the daemon."""

from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import HTTPConnection

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


def forgotten_names(request: HTTPConnection) -> ForgottenNames:
    """Return the names of forgotten workers of a daemon."""
    known = request.app.state.forgotten_names
    assert isinstance(known, ForgottenNames)
    return known
