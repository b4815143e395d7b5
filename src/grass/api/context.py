"""What routes need of the daemon."""

from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import Request

from grass.broker.service import Broker


class Context(NamedTuple):
    """The daemon behind the API."""

    broker: Broker
    worker: str
    """The id of this daemon's own worker."""
    version: str
    started_at: int
    stop: Callable[[], None]


def context_of(request: Request) -> Context:
    """Find the daemon that a request is for."""
    context = request.app.state.context
    assert isinstance(context, Context)
    return context
