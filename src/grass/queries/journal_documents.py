"""Events of the journal as documents."""

import json

from grass.model.times import rfc3339
from grass.queries.documents import EventReply
from grass.store.changes import StoredEvent


def event_reply(event: StoredEvent) -> EventReply:
    """Return an event as a reply."""
    return EventReply(
        event.seq,
        rfc3339(event.at) or "",
        event.actor,
        event.kind,
        event.job,
        event.attempt,
        json.loads(event.data),
    )
