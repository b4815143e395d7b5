"""Where state is kept: one interface, and SQLite behind it."""

from grass.store.changes import Changes, Event
from grass.store.interface import JobFilter, Order, Snapshot, Store

__all__ = ["Changes", "Event", "JobFilter", "Order", "Snapshot", "Store"]
