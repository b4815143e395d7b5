"""What a caller may see of jobs."""

from starlette.requests import HTTPConnection

from grass.api.access.auth import actor, may
from grass.api.context import Context, api_state, context_of
from grass.model.access import Right
from grass.queries.feed.feed import Feed
from grass.queries.presentation import DaemonFacts, Presenter, Viewer


def viewer(request: HTTPConnection) -> Viewer:
    """Return the caller as one who looks at jobs."""
    return Viewer(actor(request), may(request, Right.OPERATE))


def presenter(request: HTTPConnection) -> Presenter:
    """Return what makes documents for callers."""
    names = api_state(request).forgotten_names
    return Presenter(context_of(request).broker, names)


def daemon_facts(context: Context) -> DaemonFacts:
    """Return what an overview tells of a daemon."""
    tcp = None if context.tcp is None else context.tcp._asdict()
    return DaemonFacts(context.version, context.started_at, tcp)


def feed_of(request: HTTPConnection) -> Feed:
    """Return the daemon's feed, made for the first who looks."""
    shared, context = api_state(request), context_of(request)
    if shared.feed is None:
        shared.feed = Feed(
            context.broker,
            shared.forgotten_names,
            daemon_facts(context),
            shared.closing,
        )
    return shared.feed
