"""Decisions: which waiting job starts, and on which units. No clock, no I/O."""

from grass.scheduler.core import Scheduler
from grass.scheduler.dispatch import Placement
from grass.scheduler.explain import Explanation, Need

__all__ = ["Explanation", "Need", "Placement", "Scheduler"]
