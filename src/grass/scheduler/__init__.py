"""Decisions: which waiting job starts, and on which units. No clock, no I/O."""

from grass.scheduler.dispatch import Placement
from grass.scheduler.explain import Explanation, Need
from grass.scheduler.scheduler import Scheduler

__all__ = ["Explanation", "Need", "Placement", "Scheduler"]
