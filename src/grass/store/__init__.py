"""Where state is kept: one interface, and SQLite behind it."""

from grass.store.changes import Changes, Event
from grass.store.interface import JobFilter, Snapshot, Store

__all__ = ["Changes", "Event", "JobFilter", "Snapshot", "Store"]
