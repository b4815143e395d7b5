"""What routes need of the daemon."""

from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import HTTPConnection

from grass.broker.shell.service import Broker
from grass.queries.cluster_documents import ForgottenNames
from grass.settings import Settings, default_settings


class DoorInfo(NamedTuple):
    """How other machines reach this broker."""

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
    """What the daemon was told; `settings.listed()` is for people to look at."""
    door: DoorInfo | None = None
    """None: only this machine is listened to."""


def context_of(request: HTTPConnection) -> Context:
    """Find the daemon that a request is for."""
    context = request.app.state.context
    assert isinstance(context, Context)
    return context


def forgotten_names(request: HTTPConnection) -> ForgottenNames:
    """Find the names of forgotten workers that a daemon knows."""
    known = request.app.state.forgotten_names
    assert isinstance(known, ForgottenNames)
    return known
