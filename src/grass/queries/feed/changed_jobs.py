"""What has changed since a line of the journal, as far as a frame has room for it.

The journal tells which jobs changed, so that a follower may come back after any time
and after a restart of the daemon. Of a burst only the newest changes are read, and the
others are counted.
"""

import json

import msgspec

from grass.queries.listing import FOLLOWED_RUNNING, Picture, picture
from grass.store.changes import StoredEvent
from grass.store.interface import JobDetails, Store

MOST_EVENTS = 400
MOST_JOBS = 200


class Wanted(msgspec.Struct, frozen=True):
    """Which parts of a change somebody follows."""

    after: int
    overview: bool = False
    jobs: bool = False
    events: bool = False


class ChangedRows(msgspec.Struct):
    """What was read, all of it of one commit."""

    newest: int
    """The number of the journal's last line."""
    picture: Picture | None = None
    events: list[StoredEvent] = []
    events_left: int = 0
    """How many more events there were."""
    jobs: list[JobDetails] = []
    removed: list[int] = []
    jobs_left: int = 0
    """How many more changes of jobs there were."""


def read_changes(store: Store, wanted: Wanted) -> ChangedRows:
    """Read what has changed."""
    found = ChangedRows(store.last_event())
    if wanted.overview:
        found.picture = picture(store, None, members=False, running=FOLLOWED_RUNNING)
    if found.newest > wanted.after and (wanted.jobs or wanted.events):
        first = max(wanted.after, found.newest - MOST_EVENTS)
        found.events = store.events(first, MOST_EVENTS, None, ())
        found.events_left = first - wanted.after
    if wanted.jobs:
        ids, more = _changed(found.events)
        found.jobs = store.details(ids)
        found.removed = sorted(set(ids) - {one.job.id for one in found.jobs})
        found.jobs_left = more + found.events_left
    return found


def _changed(events: list[StoredEvent]) -> tuple[list[int], int]:
    """Return the jobs that events are about, the newest, and how many are left out."""
    ids, more = dict[int, None](), 0
    for event in reversed(events):
        data = json.loads(event.data)
        if event.kind == "pruned":
            more += int(data["jobs"])
        if event.job is None:
            continue
        last = int(data.get("last", event.job)) if event.kind == "enqueued" else 0
        concerned = range(max(event.job, last), event.job - 1, -1)
        room = max(0, MOST_JOBS - len(ids))
        ids.update(dict.fromkeys(concerned[:room]))
        more += max(0, len(concerned) - room)
    return sorted(ids), more
